"""The workflow for hosted runners: nothing here can run it, so what can be checked without a runner is."""

import re
from pathlib import Path

import pytest

from pytest_opsagent.options import OPTIONS

ROOT = Path(__file__).parent.parent
WORKFLOW = (ROOT / ".github/workflows/k3d.yml").read_text(encoding="utf-8")


def test_every_action_is_pinned_to_a_commit_and_says_its_version() -> None:
    used = re.findall(r"uses: (.*)", WORKFLOW)
    assert len(used) == 3
    assert [action for action in used if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action)] == []


def test_the_job_may_read_the_repository_and_nothing_else() -> None:
    assert re.findall(r"(?m)^ *permissions:\n((?:  .*\n)+)", WORKFLOW) == ["  contents: read\n"]
    assert "persist-credentials: false" in WORKFLOW
    assert "secrets." not in WORKFLOW


@pytest.mark.covers("A23")
def test_its_targets_options_and_files_are_there() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"run: make (\S+)", WORKFLOW)
    assert targets == [".venv/.installed", "cluster-up", "cluster-down"]
    assert [name for name in targets if f"\n{name}:" not in makefile] == []
    flags = set(re.findall(r"--ops-[a-z-]+", WORKFLOW))
    assert flags == {"--ops-mode", "--ops-require", "--ops-kubeconfig"}
    assert flags <= {option.flag_name for option in OPTIONS}
    bootstrap = (ROOT / "k3d/bootstrap.sh").read_text(encoding="utf-8")
    assert "state=${OPS_DEMO_STATE:-$HOME/.local/state/pytest-opsagent}" in bootstrap
    assert "readonly CLUSTER=ops-demo" in bootstrap
