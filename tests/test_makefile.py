"""The commands that a fresh clone starts with."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MAKE = shutil.which("make")

needs_make = pytest.mark.skipif(MAKE is None, reason="make is not installed")


def make(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    return subprocess.run(
        [str(MAKE), *arguments], cwd=folder, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )


@needs_make
@pytest.mark.covers("A22", "A23")
def test_help_lists_every_target_that_people_type() -> None:
    listed = re.findall(r"^make (\S+) +\S", make(ROOT, "help").stdout, re.MULTILINE)
    typed = {"eval", "mutate", "test", "demo", "lint", "lowest", "live-local", "cluster-up", "cluster-down"}
    assert typed <= set(listed)


@needs_make
@pytest.mark.parametrize("target", ["eval", "mutate", "test", "demo", "lint", "lowest"])
def test_an_old_python_gets_one_sentence_and_leaves_nothing_behind(tmp_path: Path, target: str) -> None:
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path / name)
    done = make(tmp_path, target, "PYTHON=false")
    assert done.returncode != 0
    assert done.stderr.splitlines()[0] == (
        "Python 3.11 or newer is needed: install it, or name it with make PYTHON=/path/to/python3.11"
    )
    assert not list(tmp_path.glob(".venv*"))


@needs_make
@pytest.mark.parametrize(("pip", "said"), [(0, "atheris_targets.py lines"), (1, "atheris cannot be installed")])
def test_fuzz_runs_the_properties_and_then_what_needs_atheris_where_it_can_be_had(
    tmp_path: Path, pip: int, said: str
) -> None:
    for name in ("pyproject.toml", "Makefile"):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / ".venv/bin").mkdir(parents=True)
    for program, code in (("pytest", 0), ("python", pip)):
        double = tmp_path / ".venv/bin" / program
        double.write_text(f'#!/bin/sh\necho {program} "$@"\nexit {code}\n')
        double.chmod(0o755)
    (tmp_path / ".venv/.installed").touch()
    done = make(tmp_path, "fuzz")
    assert done.returncode == 0
    assert "--hypothesis-profile=fuzz tests/fuzz" in done.stdout
    assert [line for line in done.stdout.splitlines() if said in line]


@needs_make
def test_every_script_that_the_targets_name_is_there_and_executable() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    scripts = re.findall(r"(?:[\w.-]+/)+(?:[\w-]+\.sh|run)\b", makefile)
    assert {"k3d/bootstrap.sh", "k3d/teardown.sh", "live/run.sh", ".ci/run"} <= set(scripts)
    for script in scripts:
        assert os.access(ROOT / script, os.X_OK), script


TARGETS = ["lint", "test", "eval", "mutate", "guard-report", "test-k8s-real"]


@pytest.fixture
def ci(tmp_path: Path) -> Path:
    """A copy of .ci/run beside doubles of make and of what would install a browser."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/run", tmp_path / ".ci/run")
    (tmp_path / "fake-programs").mkdir()
    for name, body in {
        "make": 'echo "$1" >>calls; [ "$1" != "${FAIL:-}" ]',
        "apt-get": "echo apt-get >>calls; exit 1",
        "id": "echo 0",
    }.items():
        program = tmp_path / "fake-programs" / name
        program.write_text(f"#!/bin/sh\n{body}\n", "utf-8")
        program.chmod(0o755)
    for name in ("bash", "dirname", "sh", "timeout"):
        real = shutil.which(name)
        assert real is not None
        (tmp_path / "fake-programs" / name).symlink_to(real)
    return tmp_path


def run_ci(folder: Path, **environment: str) -> tuple[int, list[str], str]:
    done = subprocess.run(
        ["bash", str(folder / ".ci/run")],
        env={"PATH": str(folder / "fake-programs"), **environment},
        capture_output=True,
        text=True,
    )
    return done.returncode, (folder / "calls").read_text("utf-8").split(), done.stdout


def test_ci_runs_what_the_readme_says_and_goes_on_without_a_browser(ci: Path) -> None:
    status, calls, output = run_ci(ci)
    assert status == 0
    assert calls == ["apt-get", *TARGETS]
    assert "could not be installed: chromium" in output


@pytest.mark.parametrize("target", TARGETS)
def test_ci_fails_when_one_of_its_commands_fails_and_still_runs_the_others(ci: Path, target: str) -> None:
    status, calls, output = run_ci(ci, FAIL=target)
    assert status == 1
    assert calls[1:] == TARGETS
    assert f"== make {target} failed" in output
