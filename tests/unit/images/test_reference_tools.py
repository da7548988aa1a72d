"""Whatever a model asks for, a tool answers with a text and the workspace's walls hold."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.images.sources import reference

tools = reference("tools")
checks = reference("checks")
model = reference("model")
workspaces = reference("workspace")
errors = reference("errors")

FILES = {
    "hw/x.kicad_sch": "(kicad_sch\n)\n",
    "hw/x.kicad_pro": "{}\n",
    "docs/BOM.md": "# BOM\n",
    ".copperhead/config.json": '{"schematic": "hw/x.kicad_sch"}',
    ".copperhead/constraints.json": '{"k": {"max": 1}, "odd": 3}',
    ".git/HEAD": "ref: refs/heads/main\n",
}
PATHS = st.sampled_from(
    [
        *FILES,
        "",
        ".",
        "..",
        "/",
        "docs",
        "docs/new.md",
        "docs/a/b.md",
        "docs/BOM.md/x",
        "../x",
        "a\0b",
        "\ud800",
        "x" * 999,
    ]
) | st.text(max_size=8)
TEXTS = st.sampled_from(
    ["", "(", "kicad_sch", "BOM", "{}", "k", "done", "refuse", "flag", "\ud800", "\n"]
) | st.text(max_size=6)
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
ANY = st.none() | st.booleans() | NUMBERS | TEXTS | PATHS | st.lists(TEXTS | NUMBERS, max_size=3)
NAMES = sorted({name for spec in tools.SPECS.values() for name in spec.parameters})


RIGHT: dict[str, st.SearchStrategy[Any]] = {
    "string": TEXTS,
    "integer": st.integers(-3, 9),
    "number": NUMBERS,
    "array": st.lists(TEXTS, max_size=2),
}


def arguments(parameters: Mapping[str, str]) -> st.SearchStrategy[dict[str, Any]]:
    """Arguments of the right names and types."""
    kinds = {
        name: PATHS if name in {"path", "folder"} else RIGHT[kind.rstrip("?")]
        for name, kind in parameters.items()
    }
    required = {name: kinds[name] for name, kind in parameters.items() if not kind.endswith("?")}
    optional = {name: kinds[name] for name in parameters.keys() - required.keys()}
    return st.fixed_dictionaries(required, optional=optional)


def good(name: str) -> st.SearchStrategy[Any]:
    """A call with arguments that the tool takes."""
    return arguments(tools.SPECS[name].parameters).map(lambda args: model.Call("i", name, args))


BAD = st.builds(
    model.Call,
    st.just("i"),
    st.sampled_from([*tools.SPECS, "bash", ""]),
    st.dictionaries(st.sampled_from(NAMES), ANY, max_size=3),
    st.sampled_from(["", "not JSON"]),
)
CALLS = st.one_of(*map(good, tools.SPECS), BAD)


def laid_out(root: Path) -> None:
    """The files of a workspace."""
    for name, text in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.mark.parametrize("path", ["docs/BOM.md/x", "docs/BOM.md/x/y", "docs", "docs/" + "x" * 300])
def test_a_place_that_no_file_can_have_is_refused_and_needs_no_restoring(tmp_path: Path, path: str) -> None:
    laid_out(tmp_path)
    workspace = workspaces.Workspace(tmp_path)
    with pytest.raises(errors.ToolError):
        workspace.write(path, b"")
    assert workspace.touched == []
    workspace.restore()
    assert {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file()} == set(FILES)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(CALLS, min_size=1, max_size=8), st.booleans())
def test_no_call_crashes_or_leaves_the_workspace(made: list[Any], create: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "ws"
        laid_out(root)
        workspace = workspaces.Workspace(root)
        box = tools.Toolbox(
            workspace, checks.Checks(workspace, checks.Settings.read(workspace)), create=create
        )
        for call in made:
            result = box.call(call)
            assert isinstance(result, str) and len(result) < tools.RESULT + 100
            json.dumps(result)
        assert [path.name for path in Path(folder).iterdir()] == ["ws"]
        assert (root / ".git/HEAD").read_text() == FILES[".git/HEAD"]
        assert (root / ".copperhead/config.json").read_text() == FILES[".copperhead/config.json"]
        # A recorded bound is never loosened, whatever was asked.
        assert json.loads((root / ".copperhead/constraints.json").read_text())["k"]["max"] <= 1
        workspace.restore()
        kept = {str(p.relative_to(root)): p.read_text() for p in root.rglob("*") if p.is_file()}
        assert kept == FILES
