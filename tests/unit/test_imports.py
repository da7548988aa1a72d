"""Imports go one way: schema ← compass ← grader ← orchestrator; images import only schema, or nothing."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OURS = {"schema", "compass", "grader", "orchestrator"}
ALLOWED = {
    "schema": {"schema"},
    "compass": {"schema", "compass"},
    "grader": {"schema", "compass", "grader"},
    "orchestrator": OURS,
    "images": {"schema"},
}


def imports(path: Path) -> Iterator[str]:
    """Top-level names that a module imports anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.split(".")[0]


@pytest.mark.parametrize("package", ALLOWED)
def test_a_package_imports_only_what_its_room_may(package: str) -> None:
    modules = list((ROOT / package).rglob("*.py"))
    assert modules, package
    wrong = [
        f"{module.relative_to(ROOT)} imports {name}"
        for module in modules
        for name in imports(module)
        if name in OURS - ALLOWED[package]
    ]
    assert wrong == []


def test_only_the_engine_module_imports_docker() -> None:
    modules = [path for package in OURS for path in (ROOT / package).rglob("*.py")]
    assert [path.name for path in modules if "docker" in set(imports(path))] == ["engine.py"]


def test_the_grader_imports_without_engine_git_library_or_command_line() -> None:
    """``grader`` must import on a machine that has none of them."""
    code = (
        "import sys\n"
        "for name in ('docker', 'git', 'requests', 'typer', 'rich', 'structlog', 'tenacity'):\n"
        "    sys.modules[name] = None\n"
        "import grader.grade, grader.serve, grader.rescore, grader.local\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
