"""Fork bombs by shape: what starts copies of itself without a condition and without waiting."""

import re
from collections.abc import Iterator

from compass.guardrail.nodes import Compound, Function, Item, Node, Pipeline, Simple
from compass.guardrail.nodes import Sequence as Program

WHY = "a function that starts itself more than once or in the background: a fork bomb"

_ENDLESS_TESTS = (["true"], [":"], ["false"], ["/bin/true"], ["/usr/bin/true"])
_ENDLESS_FOR = re.compile(r"\(\([^;]*;\s*1?\s*;[^;]*\)\)$")
_WAITS = {"wait", "sleep", "read", "break", "exit", "return", "inotifywait", "fg"}


def recursive(function: Function) -> bool:
    """Whether the function calls itself unconditionally, through a pipe, in the background, or twice."""
    plain = background = 0
    for name, forks in _calls(function.body, False):
        if name == function.name:
            plain += 1
            background += forks
    return background > 0 or plain > 1


def _calls(node: Node, forks: bool) -> Iterator[tuple[str, bool]]:
    """Names called without a condition, and whether each starts a process beside its caller."""
    if isinstance(node, Simple):
        if node.words:
            words = [
                word for word in node.words if word not in ("command", "nohup", "setsid", "exec", "sudo")
            ]
            yield (words or node.words)[0], forks
    elif isinstance(node, Pipeline):
        for stage in node.stages:
            yield from _calls(stage, True)
    elif isinstance(node, Compound) and node.kind in ("brace", "subshell"):
        for part in node.parts:
            yield from _sequence(part, forks or node.kind == "subshell")
    elif isinstance(node, Compound) and node.kind == "while" and _always(node):
        for part in node.parts[1:]:
            yield from _sequence(part, True)


def _sequence(program: Program, forks: bool) -> Iterator[tuple[str, bool]]:
    for item in program:
        if not item.joiner:
            yield from _calls(item.node, forks or item.background)


def _always(node: Compound) -> bool:
    """Whether a loop never ends by its own test."""
    if node.kind == "for":
        return bool(_ENDLESS_FOR.match(node.name))
    last = node.parts[0][-1].node if node.parts and node.parts[0] else None
    if isinstance(last, Compound):
        return last.kind == "arith" and last.name.strip("() ") in ("1", "1==1")
    return isinstance(last, Simple) and (last.words[:1] in _ENDLESS_TESTS or last.words == ["[", "1", "]"])


def endless(node: Compound) -> bool:
    """Whether a loop without an end starts background work in each pass and never waits."""
    if not _always(node):
        return False
    items = [item for part in node.parts[node.kind == "while" :] for item in part]
    return any(_starts(item) for item in items) and not any(_pauses(item) for item in items)


def _starts(item: Item) -> bool:
    if item.background:
        return True
    node = item.node
    return (
        isinstance(node, Compound)
        and node.kind in ("brace", "subshell")
        and any(_starts(inner) for part in node.parts for inner in part)
    )


def _pauses(item: Item) -> bool:
    node = item.node
    if item.background:
        return False
    if isinstance(node, Simple):
        return bool(node.words) and node.words[0] in _WAITS
    if isinstance(node, Compound):
        return any(_pauses(inner) for part in node.parts for inner in part)
    return isinstance(node, Pipeline) and any(_pauses(Item(stage)) for stage in node.stages)


def reruns_itself(item: Item, program: Program) -> bool:
    """Whether ``$0`` is started in a pipe of itself, or twice with one in the background."""
    if isinstance(item.node, Pipeline):
        return sum(_is_self(stage) for stage in item.node.stages) > 1
    if not (item.background and _is_self(item.node)):
        return False
    return sum(_is_self(other.node) for other in program) > 1


def _is_self(node: Node) -> bool:
    if not isinstance(node, Simple) or not node.words:
        return False
    words = [word.strip("\"'") for word in node.words]
    shells = ("sh", "bash", "dash", "zsh", "exec", "nohup", ".", "source")
    return words[0] in ("$0", "${0}", "$BASH_SOURCE", "%0") or (
        words[0] in shells and words[1:2] in (["$0"], ["${0}"], ["$BASH_SOURCE"])
    )


def pipes_shell_out(node: Pipeline) -> bool:
    """Whether an interactive shell's output goes to a network tool, as in a reverse shell over a fifo."""
    names = [
        (stage.words[0].rsplit("/", 1)[-1], stage.words[1:])
        if isinstance(stage, Simple) and stage.words
        else ("", [])
        for stage in node.stages
    ]
    shells = [
        i
        for i, (name, args) in enumerate(names)
        if name in ("sh", "bash", "zsh", "dash", "ksh") and "-i" in args
    ]
    network = [
        i
        for i, (name, _) in enumerate(names)
        if name in ("nc", "ncat", "netcat", "telnet", "socat", "openssl")
    ]
    return bool(shells and network)


def extent(node: Node) -> tuple[int, int]:
    """Where a node stands in its text."""
    if isinstance(node, Pipeline):
        return extent(node.stages[0])[0], extent(node.stages[-1])[1]
    return node.start, node.end
