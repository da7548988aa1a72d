"""Words: what quotes, braces, variables and substitutions become."""

import pytest

from compass.guardrail.machine import Variables
from compass.guardrail.options import read
from compass.guardrail.paths import (
    agent_configuration,
    device,
    normalise,
    secret,
    system_directory,
)
from compass.guardrail.words import STAR, UNKNOWN, Expander, braces, plain, unescape


def expander() -> Expander:
    values = Variables({"A": "one", "S": "x y", "E": "", "P": "/usr/lib"})
    return Expander(values, lambda text: f"<{text}>")


@pytest.mark.parametrize(
    ("raw", "fields"),
    [
        ("plain", ["plain"]),
        ("'a b'", ["a b"]),
        ('"a $A"', ["a one"]),
        ("a\\ b", ["a b"]),
        ("$'\\x41\\n\\101'", ["A\nA"]),
        ("$S", ["x", "y"]),
        ('"$S"', ["x y"]),
        ("$E", []),
        ('"$E"', [""]),
        ("{a,b}c", ["ac", "bc"]),
        ("{1..3}", ["1", "2", "3"]),
        ("'{a,b}'", ["{a,b}"]),
        ("~/x", ["/home/user/x"]),
        ("~root", ["/root"]),
        ("a~", ["a~"]),
        ("${A:-two}", ["one"]),
        ("${Z:-two}", ["two"]),
        ("${A:+two}", ["two"]),
        ("${P#/usr}", ["/lib"]),
        ("${P%/lib}", ["/usr"]),
        ("${A^^}", ["ONE"]),
        ("${A/n/d}", ["ode"]),
        ("${A:1:1}", ["n"]),
        ("$((2+3))", ["5"]),
        ("$(ls a)", ["<ls", "a>"]),
        ('"`ls`"', ["<ls>"]),
        ("a*", ["a" + STAR]),
        ("'a*'", ["a*"]),
        ("$Z", [UNKNOWN]),
        ('"unclosed', ["unclosed"]),
    ],
)
def test_fields(raw: str, fields: list[str]) -> None:
    assert expander().fields(raw) == fields


def test_braces_are_bounded() -> None:
    assert braces("{a,b}" * 20) == ["{a,b}" * 20]
    assert len(braces("{a,b}{1..4}")) == 8


def test_secret_variables_carry_their_origin() -> None:
    assert "\ufdd1" in Variables().get("AWS_SECRET_ACCESS_KEY")
    assert Variables().get("EDITOR") == UNKNOWN


def test_plain_shows_what_a_person_reads() -> None:
    assert plain(f"/{UNKNOWN}/{STAR}") == "/…/*"


def test_unescape_reads_all_forms() -> None:
    assert unescape(r"\u00e9\101\x42\t") == "éAB\t"


@pytest.mark.parametrize(
    ("path", "cwd", "expected"),
    [
        ("/a/./b//c/..", None, "/a/b"),
        ("b/../../x", "/a", "/x"),
        ("../..", None, "../.."),
        ("/../..", None, "/"),
        ("", None, "."),
        ("C:\\Windows", None, "/Windows"),
    ],
)
def test_normalise(path: str, cwd: str | None, expected: str) -> None:
    assert normalise(path, cwd) == expected


def test_system_directories_and_their_contents() -> None:
    for path in ("/", "/etc", f"/usr/{STAR}", "/home/ann", f"/{STAR}", "/home/ann/.ssh", f"/et{STAR}"):
        assert system_directory(path), path
    for path in (
        "/tmp",
        f"/tmp/{STAR}",
        "/etc/nginx/x",
        "/home/ann/board",
        f"/opt/tool/{STAR}",
        "etc",
        UNKNOWN,
        STAR,
    ):
        assert system_directory(path) is None, path


def test_devices() -> None:
    for path in (
        "/dev/sda",
        "/dev/nvme0n1p2",
        "/dev/mapper/vg-root",
        "/dev/disk/by-id/x",
        "/dev/mmcblk0",
        "/dev/dm-0",
    ):
        assert device(path), path
    for path in ("/dev/null", "/dev/shm/x", "/dev/tty", "/dev/loop0", "/dev/stdout", "dev/sda", "/dev/pts/1"):
        assert device(path) is None, path


def test_secrets_and_their_public_neighbours() -> None:
    for path in (
        "/home/a/.ssh/id_rsa",
        ".env",
        "app/.env.local",
        "/etc/shadow",
        "/root/.aws/credentials",
        ".netrc",
    ):
        assert secret(path), path
    for path in (
        "/home/a/.ssh/id_rsa.pub",
        ".env.example",
        "/home/a/.ssh/known_hosts",
        "/etc/hosts",
        "env.py",
    ):
        assert secret(path) is None, path


def test_agent_configuration() -> None:
    for path in (
        ".claude/settings.json",
        "/w/.copperhead/config.json",
        ".git/hooks/pre-commit",
        "results/ledger.jsonl",
    ):
        assert agent_configuration(path), path
    for path in (".vscode/settings.json", ".git/hooks/pre-commit.sample", "/tmp/ledger.jsonl", "config.json"):
        assert agent_configuration(path) is None, path
    assert agent_configuration(".claude") is None
    assert agent_configuration(".claude", whole_folder=True)


def test_options_as_getopt_reads_them() -> None:
    found = read(["-rfo", "x", "--forc", "--out=y", "--", "-z"], short="o", long=("out",), flags=("force",))
    assert found.flags == {"r", "f", "force"}
    assert found.all("o", "out") == ["x", "y"]
    assert found.operands == ["-z"]


def test_wrappers_stop_at_the_first_operand() -> None:
    found = read(["-n", "5", "rm", "-rf"], short="n", permute=False)
    assert found.operands == ["rm", "-rf"]
    assert found.value("n") == "5"
