"""Runs a command line without running anything: follows words, files, pipes and wrappers, and lets rules
look.

Every command's output is a string (with the marks of ``compass.guardrail.words``), so that "downloaded,
decoded,
then fed to a shell" is a value that arrives at a shell, however it travelled.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from compass.guardrail import bombs
from compass.guardrail.nodes import Compound, Function, Item, Node, Pipeline, Redirect, Simple
from compass.guardrail.nodes import Sequence as Program
from compass.guardrail.paths import normalise
from compass.guardrail.syntax import TooDeepError, parse
from compass.guardrail.words import (
    DECODED,
    REMOTE,
    SECRET,
    SELF,
    UNKNOWN,
    Expander,
    Values,
    known,
    origins,
    plain,
)
from compass.scoring import Finding

#: Texts inside texts (``sh -c "sh -c …"``) that are followed.
LAYERS = 9
#: Wrappers around one command (``sudo env nice …``).
WRAPPERS = 20
#: Characters that expansions may produce in one call.
PRODUCED = 4_000_000
#: Simple commands judged in one call; loops count each pass.
STEPS = 25_000
#: Passes of a loop whose values are known.
PASSES = 8

_SECRET_VARIABLE = (
    "SECRET", "PASSWORD", "PASSWD", "PRIVATE_KEY", "API_KEY", "APIKEY", "ACCESS_KEY", "_TOKEN", "CREDENTIAL",
)  # fmt: skip
_ENVIRONMENT = {
    "HOME": "/home/user",
    "USER": "user",
    "LOGNAME": "user",
    "SHELL": "/bin/bash",
    "IFS": " \t\n",
    "UID": "1000",
    "EUID": "1000",
    "0": SELF,
    "BASH": "/bin/bash",
    "?": "0",
}


class OverBudgetError(ValueError):
    """Judging the text would take more steps, text or nesting than any honest command needs."""


class Variables(dict[str, str]):
    """Shell variables; what was never assigned is unknown, and secret where its name says so."""

    def get(self, name: str, default: str | None = None) -> str:  # type: ignore[override]  # noqa: ARG002
        """The value of ``name``; ``default`` is not consulted, because unset and unknown differ in a
        shell."""
        found = super().get(name)
        if found is not None:
            return found
        if name.isupper() and any(part in name for part in _SECRET_VARIABLE):
            return SECRET + UNKNOWN
        return UNKNOWN


@dataclass(slots=True)
class State:
    """What one shell knows; ``files`` and ``functions`` are shared with its subshells."""

    values: Variables
    files: dict[str, str]
    functions: dict[str, Node]
    cwd: str | None = None
    branch: str | None = None
    #: Container path to host path, when the command runs in a container; None on the host.
    mounts: tuple[tuple[str, str], ...] | None = None

    def subshell(self) -> "State":
        """A copy whose variables and directory change alone."""
        return replace(self, values=Variables(self.values))


Handler = Callable[["Call"], str]


@dataclass(slots=True)
class Call:
    """One command about to run: its words, its input and its surroundings, and how a rule answers."""

    machine: "Machine"
    state: State
    argv: list[str]
    stdin: str
    span: tuple[int, int]
    via: tuple[str, ...] = ()
    raw: str = ""

    @property
    def name(self) -> str:
        """The command's name without its folder."""
        return command_name(self.argv[0])

    @property
    def args(self) -> list[str]:
        """The words after the name."""
        return self.argv[1:]

    def report(self, family: str, rule: str, why: str) -> None:
        """Record a finding on the text of this command."""
        self.machine.add(Finding(f"{family}.{rule}", family, *self.span, why, self.via))

    def path(self, word: str) -> str:
        """``word`` as a normalised path on the host; paths private to a container become ``/container/…``."""
        found = normalise(word, self.state.cwd)
        if self.state.mounts is None or not found.startswith("/"):
            return found
        for inside, outside in self.state.mounts:
            if found == inside or found.startswith(inside.rstrip("/") + "/"):
                return normalise(outside + "/" + found[len(inside) :], None)
        return "/container" + found

    def run(self, argv: Sequence[str], via: str = "", stdin: str | None = None) -> str:
        """Run other words in this place, as a wrapper does."""
        if not argv:
            return UNKNOWN
        layers = (*self.via, via) if via else self.via
        if len(layers) > WRAPPERS:
            raise OverBudgetError(f"more than {WRAPPERS} commands around a command")
        inner = replace(self, argv=list(argv), via=layers, stdin=self.stdin if stdin is None else stdin)
        return self.machine.dispatch(inner)

    def shell(self, text: str, via: str, stdin: str = "", state: State | None = None) -> str:
        """Run ``text`` as shell code."""
        if DECODED in text:
            self.report(
                "download-run",
                "decoded",
                "runs a payload that is decoded on the spot, so nobody sees it first",
            )
        return self.machine.run(
            text.replace(DECODED, ""), state or self.state, stdin, self.span, (*self.via, via)
        )

    def read(self, word: str) -> str:
        """The content of a file, as far as it is known."""
        if word.startswith("/dev/fd/63"):
            return origins(word) + UNKNOWN
        path = self.path(word)
        written = self.state.files.get(path)
        return written if written is not None else self.machine.reading(path)

    def write(self, word: str, content: str, *, append: bool = False) -> None:
        """Have the write rules judge a target, and remember what it holds now."""
        path = self.path(word)
        self.machine.writing(self, path, content)
        old = self.state.files.get(path, "") if append else ""
        if len(self.state.files) < 500:
            self.state.files[path] = old + content


def command_name(word: str) -> str:
    """The name a command word runs under: no folder, no ``.exe``, no origin marks."""
    name = known(word).rsplit("/", 1)[-1]
    return name[:-4].lower() if name.lower().endswith(".exe") else name


class Machine:
    """Judges one command line. ``handlers`` maps command names to rules, ``writing`` judges every write."""

    def __init__(
        self,
        handlers: Mapping[str, Handler],
        writing: Callable[[Call, str, str], None],
        reading: Callable[[str], str],
        fallback: Handler,
        protected: Callable[[str], bool],
    ) -> None:
        self.handlers = handlers
        self.writing = writing
        self.reading = reading
        self.fallback = fallback
        self.protected = protected
        self.findings: list[Finding] = []
        self.steps = 0
        self.produced = 0
        self._calls: list[str] = []

    def add(self, finding: Finding) -> None:
        """Keep a finding once."""
        if finding not in self.findings and len(self.findings) < 200:
            self.findings.append(finding)

    def spend(self, characters: int) -> None:
        """Count text that expansions produced. Raises OverBudgetError past ``PRODUCED``."""
        self.produced += characters
        if self.produced > PRODUCED:
            raise OverBudgetError(f"expands to more than {PRODUCED} characters")

    def state(self, branch: str | None) -> State:
        """A fresh shell."""
        return State(Variables(_ENVIRONMENT), {}, {}, branch=branch)

    def run(
        self,
        text: str,
        state: State,
        stdin: str = "",
        span: tuple[int, int] | None = None,
        via: tuple[str, ...] = (),
    ) -> str:
        """Run ``text`` in ``state``; findings inside carry ``span`` when the text is not the outermost."""
        where = span or (0, len(text))
        if len(via) > LAYERS:
            self.add(
                Finding(
                    "limits.layers", "limits", *where, f"more than {LAYERS} commands inside commands", via
                )
            )
            return UNKNOWN
        try:
            program = parse(text)
        except TooDeepError as error:
            self.add(Finding("limits.depth", "limits", *where, str(error), via))
            return UNKNOWN
        return Frame(self, span, via).sequence(program, state, stdin)

    def dispatch(self, call: Call) -> str:
        """Run one command's words: a function, a rule's command, a file written earlier, or something
        else."""
        word = call.argv[0]
        if REMOTE in word:
            call.report("download-run", "remote-code", "runs text that was fetched over the network")
        if DECODED in word:
            call.report("download-run", "decoded", "runs text that is decoded on the spot")
        name = call.name
        body = call.state.functions.get(name)
        if body is not None and name not in self._calls and len(self._calls) < 4:
            self._calls.append(name)
            inner = call.state.subshell()
            positional(inner.values, call.args)
            inner.files, inner.functions = call.state.files, call.state.functions
            output = Frame(self, call.span, call.via).node(body, inner, call.stdin)
            self._calls.pop()
            return output
        handler = self.handlers.get(name)
        if handler is None and name != name.lower():
            # Some file systems and shells do not tell RM from rm.
            handler = self.handlers.get(name.lower())
            call = replace(call, argv=[name.lower(), *call.args]) if handler else call
        if handler is not None:
            return handler(call)
        return self.fallback(call)


def positional(values: Variables, args: Sequence[str]) -> None:
    """Bind ``$1`` and so on, ``$@``, ``$*`` and ``$#``."""
    values["@"] = values["*"] = " ".join(args)
    values["#"] = str(len(args))
    for number, value in enumerate(args[:9], start=1):
        values[str(number)] = value


@dataclass(slots=True)
class Frame:
    """Walks one parsed text."""

    machine: Machine
    #: The span every finding gets, or None when offsets are the outermost text's own.
    span: tuple[int, int] | None
    via: tuple[str, ...] = ()
    _looping: int = field(default=0)

    def sequence(self, program: Program, state: State, stdin: str = "") -> str:
        """Run a list of commands; the output is theirs together."""
        out: list[str] = []
        for item in program:
            self._bomb(item, program)
            output = self.node(item.node, state.subshell() if item.background else state, stdin)
            if output and len(out) < 1_000:
                out.append(output)
        return "".join(out)

    def node(self, node: Node, state: State, stdin: str = "") -> str:
        """Run one command of any kind."""
        if isinstance(node, Simple):
            return self._simple(node, state, stdin)
        if isinstance(node, Pipeline):
            if bombs.pipes_shell_out(node):
                start, end = bombs.extent(node)
                self._report(start, end, "download-run", "remote-shell", "pipes a shell to the network")
            for stage in node.stages:
                stdin = self.node(stage, state.subshell(), stdin)
            return stdin
        if isinstance(node, Function):
            state.functions[node.name] = node.body
            if bombs.recursive(node):
                self._report(node.start, node.end, "fork-bomb", "function", bombs.WHY)
            inner = state.subshell()
            positional(inner.values, [])
            inner.values.update({str(n): UNKNOWN for n in range(1, 10)} | {"@": UNKNOWN, "*": UNKNOWN})
            self.machine._calls.append(node.name)
            self.node(node.body, inner)
            self.machine._calls.pop()
            return ""
        return self._compound(node, state, stdin)

    def _compound(self, node: Compound, state: State, stdin: str) -> str:
        expander = self._expander(state, (node.start, node.end))
        call = self._call([node.kind], state, stdin, (node.start, node.end))
        stdin = self._input(node.redirects, call, expander, stdin)
        inner = state.subshell() if node.kind == "subshell" else state
        out: list[str] = []
        if node.kind == "for":
            values = [value for raw in node.values for value in expander.fields(raw)]
            many = len(values) > PASSES or self._looping > 2 or self.machine.steps > STEPS // 4
            self._looping += 1
            for value in (
                [*dict.fromkeys(values[:PASSES])] if not many else [*values[:1], " ".join(values), UNKNOWN]
            ):
                inner.values[node.name] = value
                out += [self.sequence(part, inner, stdin) for part in node.parts]
            self._looping -= 1
        elif node.kind == "while":
            self._looping += 1
            for line in self._lines(node, stdin):
                out += [self.sequence(part, inner, line) for part in node.parts]
            self._looping -= 1
        else:
            for value in node.values:
                expander.one(value)
            out += [self.sequence(part, inner, stdin) for part in node.parts]
        output = "".join(out)
        self._outputs(node.redirects, call, expander, output)
        return output

    def _lines(self, node: Compound, stdin: str) -> list[str]:
        """What each pass of a ``while read`` loop reads; one pass with the whole input for other loops."""
        first = node.parts[0][0].node if node.parts and node.parts[0] else None
        if isinstance(first, Simple) and "read" in first.words[:1] and stdin.strip():
            return stdin.strip().split("\n")[:PASSES]
        return [stdin]

    def _simple(self, node: Simple, state: State, stdin: str) -> str:
        machine = self.machine
        machine.steps += 1
        if machine.steps > STEPS:
            raise OverBudgetError(f"runs more than {STEPS} commands")
        where = (node.start, node.end)
        expander = self._expander(state, where)
        argv = [field for raw in node.words for field in expander.fields(raw)]
        machine.spend(sum(map(len, argv)) + len(stdin))
        # ``A=1 command`` sets A for the command only, but a guard gains nothing from forgetting it.
        for name, raw in node.assignments:
            self._assign(name, raw, state, expander)
        call = self._call(argv or [""], state, stdin, where, " ".join(node.words))
        for name in (name.rstrip("+") for name, _ in node.assignments):
            machine.handlers["export"](replace(call, argv=["export", f"{name}={state.values.get(name)}"]))
        call.stdin = self._input(node.redirects, call, expander, stdin)
        # ``$(< file)`` prints the file.
        output = machine.dispatch(call) if argv else call.stdin if not node.assignments else ""
        return self._outputs(node.redirects, call, expander, output)

    def _assign(self, name: str, raw: str, state: State, expander: Expander) -> None:
        if raw.startswith("(") and raw.endswith(")"):
            value = " ".join(
                expander.fields(part)[0] for part in raw[1:-1].split()[:50] if expander.fields(part)
            )
        else:
            value = expander.one(raw)
        if name.endswith("+"):
            name = name[:-1]
            value = state.values.get(name) + value
        self.machine.spend(len(value))
        if len(state.values) < 2_000:
            state.values[name] = value[:70_000]

    def _expander(self, state: State, where: tuple[int, int]) -> Expander:
        span = self.span or where

        def substitute(text: str) -> str:
            return self.machine.run(text, state.subshell(), "", span, (*self.via, "$(…)"))

        values: Values = state.values
        return Expander(values, substitute, state.values.get("HOME"))

    def _call(self, argv: list[str], state: State, stdin: str, where: tuple[int, int], raw: str = "") -> Call:
        return Call(self.machine, state, argv, stdin, self.span or where, self.via, raw)

    def _input(self, redirects: Sequence[Redirect], call: Call, expander: Expander, stdin: str) -> str:
        for redirect in redirects:
            match redirect.op:
                case "<<" | "<<-":
                    stdin = redirect.target if redirect.literal else expander.document(redirect.target)
                case "<<<":
                    stdin = expander.one(redirect.target) + "\n"
                case "<" | "<>":
                    target = expander.one(redirect.target)
                    stdin = call.read(target)
                    self.machine.handlers["<"](replace(call, argv=["<", target, *call.argv]))
        return stdin

    def _outputs(self, redirects: Sequence[Redirect], call: Call, expander: Expander, output: str) -> str:
        """Send ``output`` where the redirections say; what is left for the pipe."""
        left = output
        for redirect in redirects:
            if redirect.op in ("<<", "<<-", "<<<", "<"):
                continue
            if (
                redirect.op in (">&", "<&") and plain(redirect.target).strip("-").isdigit()
            ) or redirect.target == "-":
                continue
            target = expander.one(redirect.target)
            if REMOTE in target or target.startswith("/dev/fd/63"):
                continue
            content = output if redirect.fd in ("", "1") or redirect.op.startswith("&") else UNKNOWN
            call.write(target, content, append=redirect.op in (">>", "&>>"))
            if redirect.fd in ("", "1"):
                left = ""
        return left

    def _report(self, start: int, end: int, family: str, rule: str, why: str) -> None:
        span = self.span or (start, end)
        self.machine.add(Finding(f"{family}.{rule}", family, *span, why, self.via))

    def _bomb(self, item: Item, program: Program) -> None:
        """Loops that start processes without waiting, and scripts that start themselves twice."""
        node = item.node
        if isinstance(node, Compound) and node.kind in ("while", "for") and bombs.endless(node):
            self._report(
                node.start,
                node.end,
                "fork-bomb",
                "loop",
                "starts processes in an endless loop without waiting",
            )
        if bombs.reruns_itself(item, program):
            start, end = bombs.extent(node)
            self._report(start, end, "fork-bomb", "self", "starts its own script again and again")
