"""The boards: known answers, and baselines as this environment measures them."""

import pytest

from orchestrator.engine import Engine
from orchestrator.fixtures import check, compare_measured, measure
from orchestrator.project import Project
from schema.hashing import hash_folder
from tests.integration.conftest import ROOT

KNOWN = {
    "ldo-node": "c0100b035809c00a990de0fd7dd3bcec245ea539da60bb289e2456c8a0ca5ead",
    "pdm-microphone-board": "dad443ad059b7cd2ec57313967db7c511caa8bcfd1ba72dc2f02cd3560249529",
    "mikoto": "85e81c58af200cc3fb39c8ec0e711acbc02fa4929ad9d9ffeddcfa8aff9dae42",
    "rp2040-dmxsun": "f055e9296dc769d4ef037919ab6752711b6163242f8d8c8f105a960d39ae93f4",
    "tycho": "fa8b679ef3d83ab391c642287190404fd8a182657e711c712ba0215c18010d12",
    "usb-sniffer": "9d16ce6f980c4f62ec13abc03c978233b8e3e500f0de678aef90537630e62bd0",
}


@pytest.mark.parametrize("name", KNOWN)
def test_the_tree_hash_has_the_standards_known_answer(name: str) -> None:
    assert hash_folder(ROOT / "fixtures" / name / "tree") == KNOWN[name]


@pytest.mark.parametrize("name", KNOWN)
def test_the_committed_baseline_is_what_the_graders_environment_measures(name: str, engine: Engine) -> None:
    project = Project(ROOT)
    assert check(project, name) == []
    compare_measured(project, name, measure(project, engine, name))
