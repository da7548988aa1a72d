"""Interpreter one-liners and scripts: what Python, Perl, Ruby, Node, PHP, awk and others would do to the
machine.

Python is parsed with ``ast``; the others are read for the handful of calls that delete, run, fork, write or
send.
"""

import ast
import re
import warnings
from collections.abc import Iterator

from compass.guardrail.machine import Call, Handler
from compass.guardrail.options import read
from compass.guardrail.rules.erase import erase
from compass.guardrail.words import DECODED, QUESTION, REMOTE, SECRET, STAR, UNKNOWN, known, origins

#: Longest program that is looked at; the rest of it is not.
_LONGEST = 65_536


def program(call: Call, text: str, language: str) -> None:
    """Judge a program's text that is about to run."""
    if REMOTE in text and known(text).strip(" \n" + UNKNOWN) == "":
        call.report("download-run", "remote-code", f"feeds {language} text that was fetched over the network")
        return
    if origins(text) and DECODED in text:
        call.report("download-run", "decoded", f"feeds {language} a program that is decoded on the spot")
    text = known(text)[:_LONGEST]
    inner = Call(call.machine, call.state, call.argv, call.stdin, call.span, (*call.via, language), call.raw)
    if language == "python":
        _python(inner, text)
    else:
        _other(inner, text)


# --- Python
# -----------------------------------------------------------------------------------------------------

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
            erase(self.call, root.translate(_GLOB), recursive=True, how="python")

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
                program(self.call, value, "python")

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


_SOCKET = re.compile(r"(?i)\bsocket\b|TCPSocket|fsockopen|/inet/tcp|IO::Socket|net\.connect|net\.Socket")
_HANDED_ON = re.compile(
    r"(?i)dup2|pty\.spawn|STDIN\s*,|reopen|\bexec\b|subprocess|proc_open|spawn|popen|\bsystem\b|\.pipe\("
)
_SHELL_NAME = re.compile(r"(?i)/bin/(?:ba|da|z|k)?sh\b|cmd\.exe|\bsh\s+-i|powershell")


def _remote_shell(call: Call, text: str) -> None:
    """The three parts of a reverse shell in one program: a socket, a shell, and one handed to the other."""
    if _SOCKET.search(text) and _HANDED_ON.search(text) and _SHELL_NAME.search(text):
        call.report("download-run", "remote-shell", "hands a shell to the network")


def _python(call: Call, text: str) -> None:
    _remote_shell(call, text)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text.replace("\x00", "") or "0")
        _Python(call).visit(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        _other(call, text)


# --- Other languages
# --------------------------------------------------------------------------------------------

_QUOTED = r"""(?:"((?:[^"\\\n]|\\.){0,2000})"|'((?:[^'\\\n]|\\.){0,2000})')"""
_RUNS = re.compile(
    r"(?:\bsystem|\bexec|\bexecSync|\bshell_exec|\bpassthru|\bpopen|\bspawnSync|\bspawn|\bexecFile|\bexecFileSync|"
    r"\bos\.execute|\bio\.popen|\bproc_open|\bdo shell script|\bcapture2?e?|\bexecvp?)\s*\(?\s*"
    + _QUOTED
    + r"(\s*,\s*[^;\n)]{0,400})?"
)
_GLOB = str.maketrans({"*": STAR, "?": QUESTION})
_BACKTICKS = re.compile(
    r"`([^`\n]{1,2000})`|(?:\bqx|%x)\s*(?:\(([^)\n]{1,2000})|\{([^}\n]{1,2000})|\[([^\]\n]{1,2000})|"
    r"/([^/\n]{1,2000})|\|([^|\n]{1,2000})|!([^!\n]{1,2000}))"
)
_TREES = re.compile(
    r"\b(?:rmtree|remove_tree|rm_rf|rm_r|rmSync|rmdirSync|rm|rimraf(?:Sync)?|removeSync|emptyDirSync|delete_tree|"
    r"remove_entry_secure|remove_dir|rmdir|removeRecursively|deleteDirectory|remove_all|RemoveAll|remove_dir_all|"
    r"Deno\.remove(?:Sync)?)\s*[(\[]*\s*\[?\s*" + _QUOTED
)
_UNLINKS = re.compile(
    r"\b(?:unlink|unlinkSync|remove|File\.delete|Remove)\s*\(?\s*(?:glob\s*\(?\s*|<)?" + _QUOTED
)
_ENDLESS = (
    r"(?:\b(?:while|until)\b\s*\(?\s*(?:1|true|!0|0|false|:)\s*\)?|\bfor\s*\(\s*;\s*;\s*\)|"
    r"\bloop\b|\bforever\b)"
)
_FORKS = re.compile(
    r"\b(?:pcntl_)?fork\b\s*(?:\(\s*\))?\s*(?:while|until)\b|\b(?:while|until)\b\s*\(?\s*(?:pcntl_)?fork\b|"
    + _ENDLESS
    + r"[^\n]{0,80}\b(?:(?:pcntl_)?fork\b|os\.fork\b|spawn\w*\s*\()|\bfork\b\s*;\s*redo|"
    r"\bfunction\s+(\w+)[^\n]{0,40}\{[^\n]{0,80}(?:spawn|fork|exec)\w*\([^\n]{0,80}\1\(\)|"
    r"spawn\w*\(\s*process\.(?:argv|execPath)[^\n]{0,200}(?:__filename|process\.argv)|\bfork\s*\(\s*__filename"
)
_BACKGROUND_LOOP = re.compile(
    r"while\s*\(?\s*(?:1|true)\s*\)?[^\n]{0,40}(?:os\.execute|system|exec|popen)\s*\([^\n]{0,200}&\s*['\"]"
)
_WRITES = re.compile(
    r"\b(?:writeFile(?:Sync)?|appendFile(?:Sync)?|createWriteStream|file_put_contents|File\.write|IO\.write|"
    r"truncate(?:Sync)?|Deno\.writeTextFile(?:Sync)?|set-content|out-file)\s*\(?\s*"
    + _QUOTED
    + r"|\b(?:open|fopen|File\.open|File\.new)\s*\(?\s*(?:my\s+)?(?:\$?\w+\s*,\s*)?"
    + _QUOTED
    + r"\s*,\s*['\"]?(?:[waWA+>]|r\+)"
    + r"|\bopen\s*\(?\s*(?:my\s+)?\$?\w+\s*,\s*['\"]\+?>{1,2}['\"]?\s*,?\s*['\"]?([^'\"\n)]{1,300})"
)
_MODES = re.compile(
    r"\bchmod(?:Sync)?\s*\(?\s*(?:(0[oO]?[0-7]{3,4})\s*,\s*"
    + _QUOTED
    + r"|"
    + _QUOTED
    + r"\s*,\s*(0[oO]?[0-7]{3,4}))"
)
_READS = re.compile(
    r"\b(?:readFile(?:Sync)?|file_get_contents|File\.read|IO\.read|fopen|open|slurp|require|get-content|gc)\s*\(?\s*"
    + _QUOTED,
    re.I,
)
_NETWORK = re.compile(
    r"(?i)\bhttps?://|\bfetch\s*\(|\bhttps?\.(?:request|get|post)|Net::HTTP|LWP|IO::Socket|TCPSocket|curl_exec|fsockopen|"
    r"\bnet\.connect|socket\.tcp|URI\.open|/inet/tcp|axios|invoke-webrequest|invoke-restmethod|webclient"
)
_FETCHED_EVAL = re.compile(
    r"(?i)(?:\biex\b|invoke-expression)[^\n]{0,200}(?:\biwr\b|\birm\b|invoke-webrequest|invoke-restmethod|downloadstring|webclient)|"
    r"(?:\biwr\b|\birm\b|invoke-webrequest|invoke-restmethod|downloadstring)[^\n]{0,200}\|\s*(?:iex\b|invoke-expression)|"
    r"\beval\b[^\n]{0,120}(?:URI\.open|open\s*\(\s*['\"]https?|Net::HTTP|LWP::Simple|\bget\s*\(?\s*['\"]https?|file_get_contents\s*\(\s*"
    r"['\"]https?|fetch\()|fetch\([^\n]{0,200}\.text\(\)[^\n]{0,80}(?:eval|Function)|https?['\"]?\)?\.get\([^\n]{0,300}\beval\s*\("
)


def _strings(found: re.Match[str], first: int = 1) -> str:
    return next((group for group in found.groups()[first - 1 :] if group is not None), "")


def _other(call: Call, text: str) -> None:
    """Judge a program in a language that is not parsed: the calls that matter, by name."""
    code = _without_comments(text)
    _remote_shell(call, code)
    if _FORKS.search(_without_strings(code)) or _BACKGROUND_LOOP.search(code):
        call.report("fork-bomb", "loop", "forks in an endless loop")
    for found in _each(_RUNS, code):
        command = _unquote(found.group(1) if found.group(1) is not None else found.group(2) or "")
        rest = [_unquote(a or b) for a, b in re.findall(_QUOTED, found.group(3) or "")]
        if rest and " " not in command:
            call.run([command, *rest])
        else:
            call.shell(_home(command), "code")
    for found in _each(_BACKTICKS, code):
        call.shell(_strings(found), "code")
    for pattern, deep in ((_TREES, True), (_UNLINKS, False)):
        for found in _each(pattern, code):
            path = _home(_unquote(_strings(found))).translate(_GLOB)
            erase(call, path, recursive=deep, how="code")
    for found in _each(_MODES, code):
        mode, path = found.group(1) or found.group(6), _strings(found, 2)
        call.run(["chmod", mode.lower().replace("0o", "0"), _home(_unquote(path))])
    for found in _each(_WRITES, code):
        call.write(_home(_unquote(_strings(found))), UNKNOWN)
    if _FETCHED_EVAL.search(code):
        call.report("download-run", "remote-code", "evaluates text that was fetched over the network")
    if _NETWORK.search(code):
        carried = any(SECRET in call.read(_home(_unquote(_strings(found)))) for found in _each(_READS, code))
        if carried or re.search(r"JSON\.stringify\(process\.env\)|ENV\.to_h|%ENV\b.{0,40}join", code):
            call.report("exfiltration", "upload", "sends a secret over the network")


def _each(pattern: re.Pattern[str], code: str) -> Iterator[re.Match[str]]:
    for number, found in enumerate(pattern.finditer(code)):
        if number >= 100:
            return
        yield found


def _home(path: str) -> str:
    return re.sub(
        r"^(?:~|\$HOME|#\{ENV\[.HOME.\]\}|\$\{process\.env\.HOME\}|\$ENV\{HOME\})(?=/|$)", "/home/user", path
    )


def _unquote(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def _without_strings(code: str) -> str:
    return re.sub(r"\"[^\"\n]*\"|'[^'\n]*'", '""', code)


def _without_comments(text: str) -> str:
    return re.sub(r"(?m)^\s*(?:#(?!include|!)|//).*$", "", text)


# --- The interpreters' own options
# ------------------------------------------------------------------------------

_CODE_OPTIONS = {
    "python": ("c", "cmWXQ"),
    "perl": ("eE", "eEImMiDFlx0"),
    "ruby": ("e", "eIrCEFKTWx"),
    "node": ("ep", "eprC"),
    "php": ("rBER", "rBERcdfFStz"),
    "lua": ("e", "el"),
    "osascript": ("e", "el"),
    "pwsh": ("", ""),
    "R": ("e", "ef"),
    "tclsh": ("", ""),
    "expect": ("c", "cfd"),
    "groovy": ("e", "ecDi"),
    "scala": ("e", "e"),
    "julia": ("eE", "eELJptH"),
    "guile": ("c", "clsLex"),
    "elixir": ("e", "er"),
    "erl": ("", ""),
    "deno": ("", ""),
    "bun": ("e", "er"),
}
_LONG_CODE = ("eval", "print", "run", "command", "execute", "expression", "encodedcommand", "code")


def _language(name: str) -> str:
    base = re.sub(r"[\d.]+$", "", name)
    aliases = {
        "pypy": "python",
        "python": "python",
        "nodejs": "node",
        "rscript": "R",
        "luajit": "lua",
        "powershell": "pwsh",
        "irb": "ruby",
        "ipython": "python",
        "jruby": "ruby",
        "bunx": "bun",
    }
    return aliases.get(base.lower(), base)


def _interpreter(call: Call) -> str:
    language = _language(call.name)
    wanted, letters = _CODE_OPTIONS.get(language, ("e", "e"))
    if language == "pwsh":
        return _powershell(call)
    if language == "deno":
        return _deno(call)
    options = read(call.args, short=letters, long=_LONG_CODE, permute=False)
    codes = [value for letter in wanted for value in options.all(letter)] + options.all(*_LONG_CODE)
    if (
        language == "perl"
        and any(re.match(r"-\w*i", known(word)) for word in call.args[:3])
        and options.has("p", "e")
    ):
        for word in options.operands:
            call.write(word, UNKNOWN)
    if codes:
        for code in codes:
            program(call, code, language)
        return origins("".join(codes)) + UNKNOWN
    if language == "python" and options.has("m"):
        return UNKNOWN
    if (language in ("ruby", "perl", "node") and options.has("c", "check")) or (
        language == "php" and options.has("l")
    ):
        return UNKNOWN  # only the syntax is checked
    script = options.operands[0] if options.operands else "-"
    if REMOTE in script and not script.startswith("/dev/fd"):
        call.report("download-run", "remote-code", f"runs {language} text that was fetched over the network")
    text = call.stdin if script in ("-", "/dev/stdin") else call.read(script)
    if text:
        program(call, text, language)
    return UNKNOWN


def _powershell(call: Call) -> str:
    words = [known(word) for word in call.args]
    for index, word in enumerate(words):
        lowered = word.lower()
        if (
            lowered.startswith("-")
            and len(lowered) > 1
            and "encodedcommand".startswith(lowered[1:])
            and lowered != "-e"
        ):
            call.report("download-run", "decoded", "runs PowerShell that is decoded on the spot")
        if lowered in ("-c", "-command", "/c", "-e") and index + 1 < len(words):
            code = " ".join(words[index + 1 :])
            program(call, code, "pwsh")
            call.shell(code.replace("\\", "\\\\"), "pwsh")
    if not words or words == ["-"]:
        program(call, call.stdin, "pwsh")
    return UNKNOWN


def _deno(call: Call) -> str:
    words = [known(word) for word in call.args]
    if words[:1] == ["eval"] and len(words) > 1:
        program(call, words[-1], "deno")
    elif words[:1] == ["run"] and any(re.match(r"https?://", word) for word in words):
        call.report("download-run", "remote-code", "runs a program straight from the network")
    return UNKNOWN


def _awk(call: Call) -> str:
    options = read(call.args, short="fFviE", long=("file", "field-separator", "assign"), permute=False)
    operands = options.operands
    text = call.read(options.value("f", "file") or "") if options.has("f", "file") else (operands or [""])[0]
    files = operands if options.has("f", "file") else operands[1:]
    if _BACKGROUND_LOOP.search(text):
        call.report("fork-bomb", "loop", "starts processes in an endless loop without waiting")
    for found in _each(re.compile(r"\bsystem\s*\(\s*" + _QUOTED), text):
        call.shell(_unquote(_strings(found)), "awk system")
    for found in _each(re.compile(_QUOTED + r"\s*\|\s*getline|\|\s*" + _QUOTED), text):
        call.shell(_unquote(_strings(found)), "awk pipe")
    for found in _each(re.compile(r">>?\s*" + _QUOTED), text):
        call.write(_unquote(_strings(found)), UNKNOWN)
    if options.value("i") == "inplace":
        for word in files:
            call.write(word, UNKNOWN)
    content = "".join(call.read(word) for word in files) or call.stdin
    if re.search(r"print\s+\|\s*\"(?:ba|da|z)?sh\"", text):
        call.shell(content, "awk pipe")
    return origins(content) + UNKNOWN


def _compile(call: Call) -> str:
    """A C program on the input or in a file written just before, whose text forks for ever."""
    text = call.stdin + "".join(call.read(word) for word in read(call.args, short="oxIlLD").operands)
    target = read(call.args, short="oxIlLD").value("o") or "a.out"
    if re.search(
        r"(?:while\s*\(\s*(?:1|true)\s*\)|for\s*\(\s*;\s*;\s*\))\s*\{?\s*(?:\w+\s*=\s*)?fork\s*\(", text
    ):
        call.report("fork-bomb", "loop", "compiles a program that forks in an endless loop")
    if REMOTE in text:
        call.state.files[call.path(target)] = REMOTE + UNKNOWN
    return UNKNOWN


_PYTHONS = [
    f"python{version}" for version in ("", "2", "3", *(f"3.{minor}" for minor in range(6, 16)), "2.7")
]

HANDLERS: dict[str, Handler] = {
    **dict.fromkeys([*_PYTHONS, "pypy", "pypy3", "ipython", "ipython3"], _interpreter),
    **dict.fromkeys(
        [
            "perl",
            "perl5",
            "ruby",
            "jruby",
            "irb",
            "node",
            "nodejs",
            "bun",
            "php",
            "php7",
            "php8",
            "lua",
            "lua5.3",
            "lua5.4",
            "luajit",
            "osascript",
            "pwsh",
            "powershell",
            "R",
            "Rscript",
            "rscript",
            "tclsh",
            "expect",
            "groovy",
            "scala",
            "julia",
            "guile",
            "elixir",
            "deno",
        ],
        _interpreter,
    ),
    "awk": _awk,
    "gawk": _awk,
    "mawk": _awk,
    "nawk": _awk,
    "gcc": _compile,
    "cc": _compile,
    "clang": _compile,
    "tcc": _compile,
    "g++": _compile,
}
