"""The stripped kicad image gives what a full Debian install gave when the reference was written."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from tests.integration import prove_kicad
from tests.integration.prove_kicad import BOARDS, STRIPPED, digest, grid, grids_agree, run_checks

MIRROR = os.environ.get("COPPERBENCH_FIXTURE_MIRROR", "")
REFERENCE: dict[str, dict[str, str]] = json.loads(prove_kicad.REFERENCE.read_text())


@pytest.fixture(scope="module")
def client() -> Iterator[docker.DockerClient]:
    connected = docker.from_env(timeout=600)
    yield connected
    connected.close()


@pytest.mark.skipif(not MIRROR, reason="COPPERBENCH_FIXTURE_MIRROR names no folder of boards")
@pytest.mark.parametrize("board", BOARDS)
def test_outputs_equal_those_of_a_full_install(client: docker.DockerClient, board: str) -> None:
    outputs = run_checks(client, STRIPPED, Path(MIRROR) / board / "tree", renders=0)
    expected = REFERENCE[board]
    assert outputs.keys() == expected.keys()
    for check, files in outputs.items():
        if check.startswith("render-"):
            assert grids_agree(grid(files["board.png"]), bytes.fromhex(expected[check])), check
        else:
            assert digest(files) == expected[check], check


def test_the_image_is_small(client: docker.DockerClient) -> None:
    assert client.images.get(STRIPPED).attrs["Size"] < 450e6


def test_apt_finds_nothing_broken(client: docker.DockerClient) -> None:
    """Derived images install more: dropping files must not have upset the package database."""
    said = client.containers.run(STRIPPED, ["apt-get", "check", "-qq"], network_mode="none", remove=True)
    assert said == b""


def test_a_project_may_have_any_name(client: docker.DockerClient, tmp_path: Path) -> None:
    name = "µ みこと Ω"
    (tmp_path / f"{name}.kicad_pro").write_text("{}")
    (tmp_path / f"{name}.kicad_sch").write_text(
        '(kicad_sch (version 20250114) (generator "eeschema") (uuid "6f1a4a5e-0000-4000-8000-000000000001")'
        ' (paper "A4") (lib_symbols) (sheet_instances (path "/" (page "1"))))'
    )
    erc = run_checks(client, STRIPPED, tmp_path, renders=0)["erc"]
    assert erc["exit"].strip() == b"0"
    assert json.loads(erc["erc.json"])["source"] == f"{name}.kicad_sch"
