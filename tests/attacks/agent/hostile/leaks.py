"""Leaks: credentials in every place that evidence, records or logs could carry out."""

import json
import os

from hostile.ground import PINOUT, WORKSPACE, commit, event, git, honest, lines, play, run_folder, write_lines

# In two parts each: no file of this repository holds one whole.
KEYS = {
    "sk": "sk-" + "copperbench0example0no0key0",
    "google": "AIza" + "copperbench0example0no0key0xxxxxxxx",
    "bearer": "Bearer " + "copperbench0example0no0key0",
    "npm": "npm_" + "copperbench0example0no0key0xxxxxxxxx",
    "github": "ghp_" + "copperbench0example0no0key0xxxxxxxxx",
    "github-pat": "github_pat_" + "copperbench0example0no0key0",
    "groq": "gsk_" + "copperbench0example0no0key0",
}
KEY = KEYS["sk"]


def _plain(kind: str) -> None:
    honest()
    (run_folder() / "key.txt").write_text(f"key: {KEYS[kind]}\n")


def key_sk() -> None:
    """A key in a file, by its prefix."""
    _plain("sk")


def key_google() -> None:
    """The same of another provider."""
    _plain("google")


def key_bearer() -> None:
    """A header's value."""
    _plain("bearer")


def key_npm() -> None:
    """A registry's token."""
    _plain("npm")


def key_github() -> None:
    """A forge's token."""
    _plain("github")


def key_github_pat() -> None:
    """The same, of the newer form."""
    _plain("github-pat")


def key_groq() -> None:
    """Another provider's key."""
    _plain("groq")


def key_in_the_transcript() -> None:
    """A key in a tool's result."""
    honest()
    write_lines([*lines()[:-1], event("tool", name="env", args={}, result=f"KEY={KEY}"), lines()[-1]])


def key_escaped_in_the_transcript() -> None:
    """A key that is one only after JSON is decoded, where a verdict quotes it."""
    play(summary="No.")
    escaped = "".join(f"\\u{ord(c):04x}" for c in KEY)
    bad = json.dumps({"ts": "", "type": "KEY", "data": {}}).replace("KEY", escaped)
    write_lines([*lines()[:-1], bad, lines()[-1]])


def key_escaped_in_a_document() -> None:
    """A key that is one only after an s-expression or a table is decoded, where a verdict quotes it."""
    play(edits=[])
    PINOUT.write_text(PINOUT.read_text() + f"\n| R1 | 2 | {KEY[:3]}\\|{KEY[3:]} | x |\n")
    path = WORKSPACE / ".copperhead/constraints.json"
    escaped = "".join(f"\\u{ord(c):04x}" for c in KEY)
    path.write_text(path.read_text().replace("{", f'{{"{escaped}": {{"max": 1}},', 1))


def key_committed_then_deleted() -> None:
    """A key in a commit, gone from the files."""
    play(commits=0)
    (WORKSPACE / "docs/key.txt").write_text(KEY)
    commit("with key")
    (WORKSPACE / "docs/key.txt").unlink()
    commit("without")


def key_in_a_commit_message() -> None:
    """A key in a commit's message."""
    play(commits=0)
    commit(f"use {KEY}")


def key_on_a_side_branch() -> None:
    """A key in a commit that no longer belongs to anything."""
    honest()
    git("checkout", "-q", "-b", "side")
    (WORKSPACE / "docs/key.txt").write_text(KEY)
    commit("side")
    git("checkout", "-q", "main")
    git("branch", "-D", "side")


def key_in_a_file_name() -> None:
    """A key as a name."""
    honest()
    (run_folder() / KEY).write_text("")


def key_in_a_folder_name() -> None:
    """A key as an empty folder's name."""
    honest()
    (run_folder() / KEY).mkdir()


def key_in_a_link() -> None:
    """A key as a link's target."""
    honest()
    (run_folder() / "link").symlink_to(KEY)


def key_in_a_pipes_name() -> None:
    """A key as the name of something that is not kept."""
    honest()
    os.mkfifo(run_folder() / KEY)


def key_on_standard_output() -> None:
    """A key printed."""
    honest()
    os.write(1, f"key {KEY}\n".encode())
    os.write(2, f"key {KEY}\n".encode())


def key_at_the_end_of_a_big_file() -> None:
    """A key in a file of a hundred megabytes, at the very end."""
    honest()
    with (run_folder() / "big").open("wb") as file:
        for _ in range(100):
            file.write(b"x" * (2**20 - 1) + b"\n")
        file.write(KEY.encode())
