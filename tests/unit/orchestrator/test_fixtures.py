"""Fixtures from a mirror or from upstream: byte for byte or refused, the file named."""

import json
from pathlib import Path

import pytest

from orchestrator.fixtures import MIRROR, Measured, check, compare_measured, sync, write_measured
from orchestrator.project import Project
from schema.errors import CheckFailed, FixtureError
from schema.fixture import BaselineCounts, ErcCounts, Scale, Violation
from schema.hashing import hash_folder, sha256, tree_hash
from tests.unit.orchestrator.repos import Repo
from tests.unit.samples import fixture

FILES = {"hw/b.kicad_sch": b"(kicad_sch)\r\n", "hw/b.kicad_pro": b"{}"}


class Checkout:
    """A checkout with one fixture, its mirror and its upstream."""

    def __init__(self, root: Path) -> None:
        self.mirror = root / "mirror"
        self.upstream = Repo(root / "upstream")
        for path, data in FILES.items():
            (self.tree / path).parent.mkdir(parents=True, exist_ok=True)
            (self.tree / path).write_bytes(data)
            (self.upstream.root / Path(path).name).write_bytes(data)
        commit = self.upstream.commit("other.txt", "x")
        self.upstream.git("config", "uploadpack.allowAnySHA1InWant", "true")
        base = fixture().to_json()
        base |= {
            "files": {path: sha256(data) for path, data in FILES.items()},
            "sha256": tree_hash((path.encode(), data) for path, data in FILES.items()),
        }
        base["upstream"] |= {  # type: ignore[operator]
            "commit": commit,
            "paths": {path: Path(path).name for path in FILES},
        }
        self.folder = root / "checkout" / "fixtures" / "some-board"
        self.folder.mkdir(parents=True)
        (root / "checkout" / "tasks").mkdir()
        self.write(base)
        self.project = Project(root / "checkout")

    @property
    def tree(self) -> Path:
        """The mirror's tree."""
        return self.mirror / "some-board" / "tree"

    def write(self, manifest: dict[str, object]) -> None:
        """Write fixture.json."""
        (self.folder / "fixture.json").write_text(json.dumps(manifest))

    def use_upstream(self) -> None:
        """Point the manifest at the local repository; the schema allows only https in committed ones."""
        original = self.project.fixture
        url = self.upstream.root.as_uri()

        def local(name: str) -> object:
            found = original(name)
            return found.model_copy(update={"upstream": found.upstream.model_copy(update={"url": url})})

        self.project.fixture = local  # type: ignore[assignment,method-assign]


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    made = Checkout(tmp_path)
    monkeypatch.setenv(MIRROR, str(made.mirror))
    return made


def test_a_mirror_gives_the_tree_and_a_second_call_does_nothing(checkout: Checkout) -> None:
    assert "mirror" in sync(checkout.project, "some-board")
    assert hash_folder(checkout.folder / "tree") == checkout.project.fixture("some-board").sha256
    assert sync(checkout.project, "some-board") == "already here"


def test_a_vendored_tree_is_taken_as_it_is_or_refused(checkout: Checkout) -> None:
    pinned = checkout.project.fixture("some-board")
    ours: dict[str, object] = {"url": None, "commit": None, "retrieved": None, "paths": {}}
    checkout.write({**pinned.to_json(), "vendored": True, "upstream": {**pinned.upstream.to_json(), **ours}})
    checkout.tree.rename(checkout.folder / "tree")
    assert sync(checkout.project, "some-board") == "already here"
    (checkout.folder / "tree" / "hw" / "b.kicad_pro").write_bytes(b"{ }")
    with pytest.raises(FixtureError, match="git checkout fixtures/some-board"):
        sync(checkout.project, "some-board")


def test_a_wrong_byte_is_refused_with_the_file_named_and_the_old_tree_kept(checkout: Checkout) -> None:
    sync(checkout.project, "some-board")
    (checkout.folder / "tree" / "hw" / "b.kicad_pro").write_bytes(b"local edit")
    (checkout.tree / "hw" / "b.kicad_pro").write_bytes(b"{ }")
    with pytest.raises(FixtureError, match=r"hw/b\.kicad_pro"):
        sync(checkout.project, "some-board")
    assert (checkout.folder / "tree" / "hw" / "b.kicad_pro").read_bytes() == b"local edit"


def test_a_file_that_the_mirror_lacks_is_named(checkout: Checkout) -> None:
    (checkout.tree / "hw" / "b.kicad_pro").unlink()
    with pytest.raises(FixtureError, match=r"hw/b\.kicad_pro"):
        sync(checkout.project, "some-board")


def test_a_mirror_without_the_board_says_so(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MIRROR, str(checkout.folder))
    with pytest.raises(FixtureError, match="has no some-board/tree"):
        sync(checkout.project, "some-board")


def test_git_gives_the_pinned_commits_bytes_even_when_upstream_moved_on(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(MIRROR)
    checkout.upstream.commit("b.kicad_sch", "moved on")
    checkout.use_upstream()
    sync(checkout.project, "some-board")
    assert (checkout.folder / "tree" / "hw" / "b.kicad_sch").read_bytes() == FILES["hw/b.kicad_sch"]


def test_an_upstream_that_does_not_answer_is_one_line_with_what_to_do(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(MIRROR)
    checkout.upstream.root.rename(checkout.upstream.root.with_name("gone"))
    checkout.use_upstream()
    with pytest.raises(FixtureError, match=MIRROR) as caught:
        sync(checkout.project, "some-board")
    assert "\n" not in str(caught.value)


def test_check_lists_everything_that_is_wrong(checkout: Checkout) -> None:
    manifest = json.loads((checkout.folder / "fixture.json").read_text())
    manifest["upstream"]["license"] = "GPL-3.0-only"
    checkout.write(manifest)
    faults = "\n".join(check(checkout.project, "some-board"))
    for expected in (
        "README.md: missing",
        "LICENSE: missing",
        "GPL-3.0-only",
        "tree: not here",
        "no baseline",
    ):
        assert expected in faults


def measured(version: str, symbols: int) -> Measured:
    """A measurement that found one finding."""
    erc = ErcCounts(errors=1, error_types={"label_dangling": 1}, warnings=0, warning_types={})
    return Measured(
        counts=BaselineCounts(kicad_version=version, erc=erc, drc=None),
        scale=Scale(schematic_lines=1, symbols=symbols, sheets=1, signal_nets=0, power_nets=0),
        reports={
            "erc": [Violation(source="erc", type="label_dangling", severity="error", items=[version])],
            "drc": [],
        },
        escapes=[],
    )


def test_a_second_environment_adds_its_baseline_and_changes_nothing_else(checkout: Checkout) -> None:
    project = checkout.project
    nine, ten = measured("9.0.2", 3), measured("10.0.6", 3)
    write_measured(project, "some-board", nine)
    with pytest.raises(CheckFailed, match="not what this environment measures"):
        compare_measured(project, "some-board", ten)
    write_measured(project, "some-board", ten)
    fixture = project.fixture("some-board")
    assert fixture.baseline == {"9": nine.counts, "10": ten.counts}
    assert fixture.kicad.verified_with_kicad_cli == ["9.0.2", "10.0.6"]
    for each in (nine, ten):
        compare_measured(project, "some-board", each)
    assert write_measured(project, "some-board", ten) == []


def test_scale_is_the_references_and_a_point_release_replaces_its_major(checkout: Checkout) -> None:
    project = checkout.project
    for each in (measured("9.0.2", 3), measured("10.0.6", 4), measured("10.0.7", 4)):
        write_measured(project, "some-board", each)
    fixture = project.fixture("some-board")
    assert fixture.scale.symbols == 3
    assert fixture.kicad.verified_with_kicad_cli == ["9.0.2", "10.0.7"]
    with pytest.raises(CheckFailed):
        compare_measured(project, "some-board", measured("10.0.7", 4))
