"""What the integration tests share: an engine with our images, and checkouts to run in."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.engine import Engine
from orchestrator.grading import GraderPool
from orchestrator.project import Project

ROOT = Path(__file__).parents[2]
PARTS = ("tasks", "suites", "fixtures", "images/agents", "models.json", "pricing.json")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything here needs the engine."""
    for item in items:
        item.add_marker(pytest.mark.engine)


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    """The engine; afterwards nothing of this process may be left in it."""
    connected = Engine.connect()
    yield connected
    left = [(kind, name) for kind, name, owner in connected.ours() if owner == connected.owner]
    assert left == [], f"left behind: {left}"


@pytest.fixture
def checkout(tmp_path: Path) -> Project:
    """A checkout of its own, in a path with a space, with the baselines that the real one has prepared."""
    return _checkout(tmp_path / "a b")


@pytest.fixture(scope="session")
def shared_checkout(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A checkout for tests that only read it, so that they prepare each baseline once."""
    return _checkout(tmp_path_factory.mktemp("shared") / "a b")


@pytest.fixture(scope="session")
def graders(engine: Engine) -> Iterator[GraderPool]:
    """One grader container for all."""
    pool = GraderPool(engine, 1, "tests")
    yield pool
    pool.close()


def _checkout(root: Path) -> Project:
    for part in PARTS:
        source = ROOT / part
        target = root / part
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            shutil.copy(source, target)
    (root / "results").mkdir()
    cache = ROOT / ".cache" / "baselines"
    if cache.is_dir():
        shutil.copytree(cache, root / ".cache" / "baselines")
    return Project(root)
