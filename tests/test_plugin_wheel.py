"""The wheel in somebody else's repository, with what it declares and nothing else."""

import importlib.metadata
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from opsproject import denied, line, wrong
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent


def declared(requirements: list[str]) -> dict[str, importlib.metadata.Distribution]:
    """Installed distributions that are needed by `requirements`, directly or not."""
    found: dict[str, importlib.metadata.Distribution] = {}
    left = [(Requirement(text), "") for text in requirements]
    while left:
        requirement, extra = left.pop()
        name = canonicalize_name(requirement.name)
        if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
            continue
        dist = importlib.metadata.distribution(requirement.name)
        if name not in found or requirement.extras:
            found[name] = dist
            inner = [Requirement(text) for text in dist.requires or ()]
            left += [(each, extra) for each in inner for extra in ("", *requirement.extras)]
    return found


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python that has the wheel and its dependencies only; its executable."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(build, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = folder.glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    (site,) = (folder / "venv").glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    (own,) = importlib.metadata.distributions(path=[str(site)])
    for dist in declared(own.requires or []).values():
        for name in {file.parts[0] for file in dist.files or () if file.parts[0] not in ("..", "__pycache__")}:
            source = Path(str(dist.locate_file(name)))
            if not (site / name).exists() and source.exists():
                (site / name).symlink_to(source)
    return folder / "venv/bin/python"


def run(python: Path, folder: Path, *args: str) -> "subprocess.CompletedProcess[str]":
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST", "COV"))}
    return subprocess.run([python, *args], cwd=folder, env=environ, capture_output=True, encoding="utf-8", timeout=120)


@pytest.mark.covers("H32", "H30")
def test_one_line_in_somebody_elses_repository_is_enough(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "scenarios.jsonl").write_text(json.dumps(line()) + "\n" + json.dumps(denied()) + "\n", encoding="utf-8")
    bare = run(installed, tmp_path, "-m", "pytest", "--ops-mode=mock")
    assert bare.returncode == 0, bare.stdout + bare.stderr
    assert "2 passed" in bare.stdout
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\nfilterwarnings = error\naddopts = --strict-markers --strict-config\n"
    )
    strict = run(installed, tmp_path, "-W", "error", "-m", "pytest", "--html=report.html", "--self-contained-html")
    assert strict.returncode == 0, strict.stdout + strict.stderr
    assert "2 passed" in strict.stdout
    assert strict.stderr == ""
    assert "GUARD DENIED" in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.covers("H32")
def test_the_plugin_that_ran_is_the_wheels_and_it_ships_what_it_needs(installed: Path, tmp_path: Path) -> None:
    show = "import mcp_ops, pytest_opsagent; print(mcp_ops.__file__); print(pytest_opsagent.__file__)"
    places = run(installed, tmp_path, "-c", show).stdout.splitlines()
    site = str(installed.parent.parent)
    assert [place.startswith(site) for place in places] == [True, True]
    (tmp_path / "scenarios.jsonl").write_text(json.dumps(wrong()) + "\n", encoding="utf-8")
    done = run(installed, tmp_path, "-m", "pytest", "-q")
    assert done.returncode == 1
    assert "scenarios.jsonl:1: expected call 2 kubectl_logs (executed), got read_file (executed)" in done.stdout
    for name in ("mcp_ops/py.typed", "pytest_opsagent/py.typed"):
        assert Path(places[0]).parent.parent.joinpath(name).is_file()
