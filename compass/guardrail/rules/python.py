"""Python programs, parsed with ``ast``: what they would delete, run, fork, write or send."""

import ast
import re
import warnings
from dataclasses import replace

from compass.guardrail.machine import Call
from compass.guardrail.rules import languages
from compass.guardrail.rules.erase import erase
from compass.guardrail.rules.languages import GLOB
from compass.guardrail.words import DECODED, REMOTE, SECRET, UNKNOWN, known, origins

_SHELL_CALLS = {
    "os.system",
    "os.popen",
    "subprocess.getoutput",
    "subprocess.getstatusoutput",
    "commands.getoutput",
    "pty.spawn",
    "asyncio.create_subprocess_shell",
    "popen",
    "system",
    "getoutput",
}
_PROCESS_CALLS = re.compile(r"(?:subprocess\.)?(?:run|call|check_call|check_output|Popen)$|subprocess\.\w+$")
_EXEC_CALLS = re.compile(r"os\.(?:exec|spawn|posix_spawn)\w*$|asyncio\.create_subprocess_exec$")
_TREE_CALLS = {"shutil.rmtree", "rmtree", "distutils.dir_util.remove_tree", "remove_tree", "send2trash"}
_FILE_CALLS = {"os.remove", "os.unlink", "os.rmdir", "os.removedirs", "Path.unlink", "remove", "unlink"}
_FETCHES = re.compile(
    r"(?:urlopen|urlretrieve|requests\.(?:get|request|post)|httpx\.\w+|\burlopen|socket\.\w+|\.recv)$"
)
_SENDS = re.compile(
    r"(?:requests|httpx|session|aiohttp|s|client)\.(?:post|put|patch|request|get)$|urlopen$|Request$|\.sendall$|\.send$|"
    r"\.sendto$|\.storbinary$|\.sendmail$|\.upload_file$|\.urlretrieve$|gethostbyname$"
)


_WALKS = re.compile(r"(?:^|\.)(?:walk|listdir|scandir|glob|iglob|rglob|iterdir)$")
_DELETES = re.compile(r"attr='(?:remove|unlink|rmtree|rmdir)'|id='(?:remove|unlink|rmtree)'")


class _Python(ast.NodeVisitor):
    """Walks a program once, with constants propagated through plain assignments."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.names: dict[str, str] = {}
        self.aliases: dict[str, str] = {}
        self.endless = 0

    def text(self, node: ast.AST | None, depth: int = 0) -> str:
        """The value of an expression as a string with marks."""
        if node is None or depth > 20:
            return UNKNOWN
        match node:
            case ast.Constant(value=str() as value):
                return value
            case ast.Constant(value=bytes() as data):
                return data.decode("latin-1")
            case ast.Constant(value=value):
                return str(value)
            case ast.Name(id=name):
                return self.names.get(name, UNKNOWN)
            case ast.BinOp(op=ast.Add() | ast.Div(), left=left, right=right):
                joint = "/" if isinstance(node.op, ast.Div) else ""
                return self.text(left, depth + 1) + joint + self.text(right, depth + 1)
            case ast.JoinedStr(values=values):
                return "".join(
                    self.text(v.value if isinstance(v, ast.FormattedValue) else v, depth + 1) for v in values
                )
            case ast.List(elts=items) | ast.Tuple(elts=items):
                return " ".join(self.text(item, depth + 1) for item in items[:50])
            case ast.Call():
                return self._returned(node, depth)
            case ast.Attribute():
                return self._attribute(node)
            case ast.Subscript(value=value):
                inner = self.dotted(value)
                return (
                    SECRET + UNKNOWN
                    if inner == "os.environ"
                    else origins(self.text(value, depth + 1)) + UNKNOWN
                )
            case ast.Dict(values=values):
                return "".join(origins(self.text(value, depth + 1)) for value in values) + UNKNOWN
        marks = "".join(origins(self.text(child, depth + 3)) for child in ast.iter_child_nodes(node))
        return marks + UNKNOWN

    def _attribute(self, node: ast.Attribute) -> str:
        dotted = self.dotted(node)
        if dotted == "os.environ":
            return SECRET + UNKNOWN
        if dotted == "os.sep":
            return "/"
        if isinstance(node.value, ast.Call | ast.Name):
            return origins(self.text(node.value)) + UNKNOWN
        return UNKNOWN

    def _returned(self, node: ast.Call, depth: int) -> str:
        name = self.dotted(node.func)
        first = node.args[0] if node.args else None
        if _FETCHES.search(name):
            return REMOTE + UNKNOWN
        if name.endswith(
            (".read", ".decode", ".encode", ".strip", ".text", ".read_text", ".read_bytes", ".readlines")
        ):
            inner = node.func.value if isinstance(node.func, ast.Attribute) else None
            value = self.text(inner, depth + 1)
            return self.call.read(value) if name.endswith(("read_text", "read_bytes")) else value
        if name in ("open", "io.open", "codecs.open"):
            return self.call.read(self.text(first, depth + 1))
        if name.endswith(("expanduser", "expandvars")):
            value = self.text(
                first or (node.func.value if isinstance(node.func, ast.Attribute) else None), depth + 1
            )
            return re.sub(r"^~(?=/|$)|\$HOME|\$\{HOME\}", "/home/user", value)
        if name.endswith("Path.home") or (name == "os.getenv" and self.text(first) == "HOME"):
            return "/home/user"
        if name.endswith("path.join"):
            return "/".join(self.text(arg, depth + 1) for arg in node.args[:20])
        if name in (
            "Path",
            "pathlib.Path",
            "str",
            "bytes",
            "PurePath",
            "os.fspath",
            "os.path.abspath",
            "os.path.realpath",
        ):
            return "/".join(self.text(arg, depth + 1) for arg in node.args[:20]) or UNKNOWN
        if (
            name == "chr"
            and isinstance(first, ast.Constant)
            and isinstance(first.value, int)
            and first.value < 0x11000
        ):
            return chr(first.value)
        if name.endswith(("b64decode", "unhexlify", "fromhex", "decompress", "a85decode", "b32decode")):
            return DECODED + origins(self.text(first, depth + 1)) + UNKNOWN
        if name.endswith(".join") and isinstance(node.func, ast.Attribute):
            return (self.text(node.func.value, depth + 1)).join(
                self.text(item, depth + 1)
                for item in (first.elts if isinstance(first, ast.List | ast.Tuple) else [first])
            )
        if name.endswith(("environ.copy", "environ.items")) or (
            name in ("dict", "json.dumps") and "environ" in ast.dump(node)[:2_000]
        ):
            return SECRET + UNKNOWN
        marks = "".join(origins(self.text(arg, depth + 3)) for arg in node.args[:10])
        if isinstance(node.func, ast.Attribute):
            marks += origins(self.text(node.func.value, depth + 3))
        return marks + UNKNOWN

    def dotted(self, node: ast.AST) -> str:
        """``a.b.c`` of a name, with import aliases undone; unknown parts are empty."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute) and len(parts) < 10:
            parts.append(node.attr)
            node = node.value
        if isinstance(node, ast.Name):
            parts.append(self.aliases.get(node.id, node.id))
        elif isinstance(node, ast.Call):
            inner = self.dotted(node.func)
            if inner in ("__import__", "importlib.import_module") and node.args:
                parts.append(self.text(node.args[0]))
            elif inner in ("Path", "pathlib.Path"):
                parts.append("Path")
            else:
                parts.append(inner.rpartition(".")[2] if not parts else inner)
        return ".".join(reversed(parts))

    def visit_Import(self, node: ast.Import) -> None:
        """Remember ``import a as b``."""
        for name in node.names:
            self.aliases[name.asname or name.name.split(".")[0]] = (
                name.name if name.asname else name.name.split(".")[0]
            )

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """Remember ``from a import b``."""
        for name in node.names:
            self.aliases[name.asname or name.name] = (
                f"{node.module}.{name.name}" if node.module != "pathlib" else name.name
            )

    def visit_Assign(self, node: ast.Assign) -> None:
        """Propagate a constant."""
        value = self.text(node.value)
        for target in node.targets:
            if isinstance(target, ast.Name):
                self.names[target.id] = value
                dotted = self.dotted(node.value) if isinstance(node.value, ast.Attribute | ast.Name) else ""
                if "." in dotted:
                    self.aliases[target.id] = dotted
        self.generic_visit(node)

    def visit_With(self, node: ast.With) -> None:
        """Bind ``with open(…) as name``."""
        for item in node.items:
            if isinstance(item.optional_vars, ast.Name):
                self.names[item.optional_vars.id] = self.text(item.context_expr)
        self.generic_visit(node)

    def _sweeps(self, node: ast.For) -> None:
        """A loop over everything in a place, whose body deletes."""
        walk = node.iter
        if not isinstance(walk, ast.Call) or not _WALKS.search(self.dotted(walk.func)):
            return
        owner = walk.func.value if isinstance(walk.func, ast.Attribute) else None
        root = self.text(walk.args[0]) if walk.args else self.text(owner)
        if _DELETES.search("".join(ast.dump(statement)[:4_000] for statement in node.body[:20])):
            erase(self.call, root.translate(GLOB), recursive=True, how="python")

    def visit_For(self, node: ast.For) -> None:
        """Bind a loop's variable to the values listed, joined by being visited one by one."""
        self._sweeps(node)
        if isinstance(node.target, ast.Name) and isinstance(node.iter, ast.List | ast.Tuple):
            for item in node.iter.elts[:8]:
                self.names[node.target.id] = self.text(item)
                for statement in node.body:
                    self.visit(statement)
        else:
            unending = self._unending(node.iter)
            self.endless += unending
            self.generic_visit(node)
            self.endless -= unending

    def visit_While(self, node: ast.While) -> None:
        """Know whether the body runs for ever."""
        always = isinstance(node.test, ast.Constant) and bool(node.test.value)
        forks = isinstance(node.test, ast.Call) and self.dotted(node.test.func).endswith("fork")
        if forks:
            self.call.report("fork-bomb", "loop", "forks in an endless loop")
        self.endless += always
        self.generic_visit(node)
        self.endless -= always

    def visit_comprehension(self, node: ast.comprehension) -> None:
        """Know whether a comprehension runs for ever."""
        self.endless += self._unending(node.iter)
        self.generic_visit(node)

    def _unending(self, node: ast.AST) -> bool:
        if not isinstance(node, ast.Call):
            return False
        name = self.dotted(node.func)
        return name.endswith(("itertools.count", "itertools.cycle", "itertools.repeat")) or (
            name == "iter" and len(node.args) == 2
        )

    def visit_ListComp(self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp) -> None:
        """A comprehension over something without an end is an endless loop."""
        before = self.endless
        for generator in node.generators:
            self.visit(generator)
        self.visit(node.elt)
        self.endless = before

    visit_GeneratorExp = visit_SetComp = visit_ListComp  # noqa: N815

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """A function that starts a process or thread of itself, and itself again."""
        source = ast.dump(node)[:20_000]
        if source.count(f"id='{node.name}'") > 1 and re.search(
            r"attr='(?:Process|Thread|fork)'|id='(?:Process|fork)'", source
        ):
            self.call.report("fork-bomb", "function", "a function that starts itself more than once")
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        """Judge one call."""
        name = self.dotted(node.func)
        first = node.args[0] if node.args else None
        self._processes(node, name, first)
        if name in _TREE_CALLS or name.endswith(".rmtree"):
            owner = (
                node.func.value if isinstance(node.func, ast.Attribute) and name.startswith("Path") else None
            )
            self._erase(first or owner, recursive=True)
        elif name in _FILE_CALLS or name.endswith((".unlink", ".rmdir")):
            owner = node.func.value if isinstance(node.func, ast.Attribute) else None
            self._erase(first if first is not None else owner, recursive=False)
        elif name in ("os.rename", "os.replace", "shutil.move") and len(node.args) > 1:
            self.call.run(["mv", self.text(first), self.text(node.args[1])])
        elif (
            name in ("shutil.copy", "shutil.copyfile", "shutil.copy2", "os.symlink", "os.link")
            and len(node.args) > 1
        ):
            self.call.run(["cp", self.text(first), self.text(node.args[1])])
        elif name in ("os.chmod", "os.chown", "os.lchown") and len(node.args) > 1:
            self._chmod(name, node)
        elif (name == "os.fork" and self.endless) or (name.endswith("fork") and self.endless):
            self.call.report("fork-bomb", "loop", "forks in an endless loop")
        elif self.endless and re.search(r"(?:Popen|Process|start_new_thread)$", name):
            self.call.report("fork-bomb", "loop", "starts processes in an endless loop")
        self._writes(node, name, first)
        self._evaluates(name, first)
        self._sends(node, name)
        self.generic_visit(node)

    def _evaluates(self, name: str, first: ast.AST | None) -> None:
        if name in ("exec", "eval", "compile", "builtins.exec", "runpy.run_path", "marshal.loads"):
            value = self.text(first)
            if REMOTE in value:
                self.call.report(
                    "download-run", "remote-code", "runs Python that was fetched over the network"
                )
            elif DECODED in value:
                self.call.report("download-run", "decoded", "runs Python that is decoded on the spot")
            elif UNKNOWN not in value and len(self.call.via) < 6:
                judge(replace(self.call, via=(*self.call.via, "python")), known(value))

    def _sends(self, node: ast.Call, name: str) -> None:
        if _SENDS.search(name):
            sent = "".join(self.text(arg) for arg in node.args) + "".join(
                self.text(word.value) for word in node.keywords if word.arg not in ("headers", "auth", "cert")
            )
            if SECRET in sent:
                self.call.report("exfiltration", "upload", "sends a secret over the network")

    def _processes(self, node: ast.Call, name: str, first: ast.AST | None) -> None:
        if name in _SHELL_CALLS or name.endswith((".system", ".popen")):
            self.call.shell(self.text(first), name)
        elif _PROCESS_CALLS.search(name):
            if isinstance(first, ast.List | ast.Tuple):
                self.call.run([self.text(item) for item in first.elts[:100]], name)
            elif first is not None:
                self.call.shell(self.text(first), name)
        elif _EXEC_CALLS.search(name):
            arguments = node.args[1:] if len(node.args) > 1 else node.args
            words = [
                self.text(item)
                for arg in arguments
                for item in (arg.elts if isinstance(arg, ast.List) else [arg])
            ]
            if len(words) > 1 and "spawn" not in name:
                self.call.run(words, name)
            self.call.run([self.text(first), *words[1:]], name)

    def _erase(self, node: ast.AST | None, *, recursive: bool) -> None:
        erase(self.call, self.text(node), recursive=recursive, how="python")

    def _chmod(self, name: str, node: ast.Call) -> None:
        mode = node.args[1]
        if name == "os.chmod" and isinstance(mode, ast.Constant) and isinstance(mode.value, int):
            self.call.run(["chmod", f"{mode.value:o}", self.text(node.args[0])])

    def _writes(self, node: ast.Call, name: str, first: ast.AST | None) -> None:
        if name in ("open", "io.open", "os.open", "codecs.open"):
            mode = self.text(node.args[1]) if len(node.args) > 1 else ""
            mode += "".join(self.text(word.value) for word in node.keywords if word.arg == "mode")
            flags = ast.dump(node.args[1]) if name == "os.open" and len(node.args) > 1 else ""
            if re.search(r"[wax+]", mode.replace(UNKNOWN, "")) or re.search(r"O_(?:WRONLY|RDWR)", flags):
                self.call.write(self.text(first), UNKNOWN)
        elif name.endswith((".open", ".write_text", ".write_bytes", ".touch")) and isinstance(
            node.func, ast.Attribute
        ):
            mode = self.text(first) if name.endswith(".open") else "w" if not name.endswith(".touch") else ""
            if re.search(r"[wax+]", mode):
                self.call.write(self.text(node.func.value), UNKNOWN)


def judge(call: Call, text: str) -> None:
    """Judge a Python program; one that does not parse is read like the languages that are not parsed."""
    languages.remote_shell(call, text)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text.replace("\x00", "") or "0")
        _Python(call).visit(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        languages.judge(call, text)
