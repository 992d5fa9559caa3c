"""The scripts of k3d/: what can be shown without Docker.

The programs that the scripts drive are replaced by recording doubles in a folder called `fake-programs`: no container,
no cluster and no download is involved, and nothing here says that a real k3d would agree.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

K3D = Path(__file__).parent.parent / "k3d"
BASICS = ["awk", "bash", "cat", "chmod", "dirname", "env", "grep", "id", "mkdir", "mktemp", "mv", "rm", "sha256sum"]

FAKE_K3D = """
case "$1 $2" in
  "cluster list") cat "$FAKE_STATE/clusters" 2>/dev/null || true ;;
  "cluster create") echo "$3 1/1 0/0 false" >>"$FAKE_STATE/clusters" ;;
  "cluster delete") : >"$FAKE_STATE/clusters" ;;
  "kubeconfig get") echo "fake-admin-kubeconfig" ;;
esac
"""
FAKE_KUBECTL = """
case "$*" in
  *"clusters[0].cluster.server"*) echo "https://127.0.0.1:6550" ;;
  *certificate-authority-data*) echo "ZmFrZQ==" ;;
  *"create token"*) echo "fake-token" ;;
esac
"""
FAKE_CURL = """
while [ $# -gt 0 ]; do if [ "$1" = --output ]; then echo "#!/bin/sh" >"$2"; fi; shift; done
"""
DOUBLES = {
    "docker": "",
    "k3d": FAKE_K3D,
    "kubectl": FAKE_KUBECTL,
    "curl": FAKE_CURL,
    "sleep": "",
    "sudo": "exit 1",
    "uname": 'if [ "${1:-}" = -m ]; then echo x86_64; else echo Linux; fi',
}


@dataclass(frozen=True)
class Machine:
    """A machine that has the basic tools and doubles of everything else."""

    root: Path

    @property
    def programs(self) -> Path:
        return self.root / "fake-programs"

    @property
    def state(self) -> Path:
        return self.root / "home/.local/state/pytest-opsagent"

    def double(self, name: str, body: str) -> None:
        path = self.programs / name
        path.write_text(f'#!/usr/bin/env bash\nprintf "%s\\n" "{name} $*" >>"$FAKE_STATE/calls"\n{body}\n', "utf-8")
        path.chmod(0o755)

    def calls(self) -> list[str]:
        record = self.root / "calls"
        lines = record.read_text("utf-8").splitlines() if record.exists() else []
        record.unlink(missing_ok=True)
        return lines

    def run(self, script: str) -> subprocess.CompletedProcess[str]:
        environment = {
            "PATH": str(self.programs),
            "HOME": str(self.root / "home"),
            "FAKE_STATE": str(self.root),
        }
        command = ["bash", str(K3D / script)]
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    made = Machine(tmp_path)
    made.programs.mkdir()
    (tmp_path / "home").mkdir()
    for name in BASICS:
        real = shutil.which(name)
        if real is None:
            pytest.skip(f"this machine has no {name}, which k3d/bootstrap.sh needs")
        (made.programs / name).symlink_to(real)
    for name, body in DOUBLES.items():
        made.double(name, body)
    return made


@pytest.mark.covers("A23")
@pytest.mark.parametrize("script", sorted(K3D.glob("*.sh")), ids=lambda path: path.name)
def test_the_scripts_are_clean_for_shellcheck(script: Path) -> None:
    shellcheck = shutil.which("shellcheck", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if shellcheck is None:
        pytest.skip("shellcheck is not installed (dependency group lint)")
    done = subprocess.run([shellcheck, str(script)], capture_output=True, text=True)
    assert done.stdout + done.stderr == ""
    assert os.access(script, os.X_OK)


@pytest.mark.covers("A23")
def test_the_first_run_creates_one_node_and_the_second_creates_nothing(machine: Machine) -> None:
    first = machine.run("bootstrap.sh")
    assert first.returncode == 0, first.stderr
    created = [call for call in machine.calls() if call.startswith("k3d cluster create")]
    assert len(created) == 1
    words = created[0].split()
    assert words[:5] == ["k3d", "cluster", "create", "ops-demo", "--image"]
    assert re.fullmatch(r"rancher/k3s:v[\d.]+-k3s\d+@sha256:[0-9a-f]{64}", words[5])
    assert "--servers 1 --agents 0" in created[0]

    second = machine.run("bootstrap.sh")
    assert second.returncode == 0, second.stderr
    calls = machine.calls()
    assert not [call for call in calls if call.startswith(("k3d cluster create", "curl"))]
    assert "k3d cluster start ops-demo --wait --timeout 180s" in calls
    assert second.stdout == first.stdout


@pytest.mark.covers("A23")
def test_the_manifests_are_applied_and_waited_for(machine: Machine) -> None:
    machine.run("bootstrap.sh")
    kubectl = [call for call in machine.calls() if call.startswith("kubectl")]
    steps = ["apply -k", "rollout status deployment/web", "rollout status deployment/redis", "=CrashLoopBackOff"]
    positions = [next(at for at, call in enumerate(kubectl) if step in call) for step in steps]
    assert positions == sorted(positions)


@pytest.mark.covers("A23", "H33")
def test_the_users_own_kubeconfig_and_context_stay_as_they_are(machine: Machine) -> None:
    machine.run("bootstrap.sh")
    calls = machine.calls()
    (create,) = [call for call in calls if call.startswith("k3d cluster create")]
    assert "--kubeconfig-update-default=false --kubeconfig-switch-context=false" in create
    assert all("--kubeconfig" in call for call in calls if call.startswith("kubectl "))
    assert not (machine.root / "home/.kube").exists()


@pytest.mark.covers("A23")
def test_the_printed_kubeconfig_is_the_readers_and_private(machine: Machine) -> None:
    done = machine.run("bootstrap.sh")
    reader = machine.state / "ops-demo.kubeconfig"
    assert f"kubeconfig: {reader}\n" in done.stdout
    assert f"pytest --ops-mode=mock scenarios --ops-kubeconfig={reader}\n" in done.stdout
    text = reader.read_text("utf-8")
    assert "fake-token" in text
    assert "fake-admin-kubeconfig" not in text
    assert {path.stat().st_mode & 0o077 for path in machine.state.iterdir()} == {0}


@pytest.mark.covers("A23")
def test_missing_programs_are_installed_once(machine: Machine) -> None:
    kept = {name: (machine.programs / name).read_text("utf-8") for name in ("k3d", "kubectl")}
    for name in kept:
        (machine.programs / name).unlink()
    machine.double("sha256sum-that-accepts", "cat >/dev/null")
    (machine.programs / "sha256sum").unlink()
    (machine.programs / "sha256sum-that-accepts").rename(machine.programs / "sha256sum")
    machine.double("curl", _curl_that_delivers(machine.root, kept))

    done = machine.run("bootstrap.sh")
    assert done.returncode == 0, done.stderr
    downloads = [call for call in machine.calls() if call.startswith("curl")]
    assert len(downloads) == 2
    assert any(
        "https://dl.k8s.io/release/v" in call and call.endswith("/bin/linux/amd64/kubectl") for call in downloads
    )
    assert any("https://github.com/k3d-io/k3d/releases/download/v" in call for call in downloads)
    assert "add " in done.stderr
    assert " to your PATH" in done.stderr

    assert machine.run("bootstrap.sh").returncode == 0
    assert not [call for call in machine.calls() if call.startswith("curl")]


def _curl_that_delivers(folder: Path, files: dict[str, str]) -> str:
    for name, text in files.items():
        (folder / f"download-{name}").write_text(text, "utf-8")
    return """
    url=${@: -1}
    case $url in */kubectl) from=kubectl ;; *) from=k3d ;; esac
    while [ $# -gt 0 ]; do if [ "$1" = --output ]; then cat "$FAKE_STATE/download-$from" >"$2"; fi; shift; done
    """


@pytest.mark.covers("A23")
def test_a_download_with_another_checksum_is_thrown_away(machine: Machine) -> None:
    (machine.programs / "k3d").unlink()
    done = machine.run("bootstrap.sh")
    assert done.returncode == 1
    assert "k3d from https://github.com/k3d-io/k3d/releases/download/" in done.stderr
    assert "has not the checksum" in done.stderr
    assert list((machine.root / "home/.local/bin").iterdir()) == []
    assert not [call for call in machine.calls() if call.startswith("k3d")]


@pytest.mark.covers("A23")
def test_docker_is_installed_by_the_package_manager_when_root_or_sudo_allows(machine: Machine) -> None:
    docker = (machine.programs / "docker").read_text("utf-8")
    (machine.programs / "docker").unlink()
    (machine.root / "docker.later").write_text(docker, "utf-8")
    machine.double("sudo", 'shift; "$@"')
    machine.double(
        "apt-get",
        'case "$*" in *docker.io) cat "$FAKE_STATE/docker.later" >"$HOME/../fake-programs/docker"; '
        'chmod 0755 "$HOME/../fake-programs/docker" ;; esac',
    )
    done = machine.run("bootstrap.sh")
    assert done.returncode == 0, done.stderr
    assert "apt-get -q install -y docker.io" in machine.calls()


@pytest.mark.covers("A23")
@pytest.mark.parametrize(
    ("prepare", "sentence"),
    [
        (lambda machine: (machine.programs / "docker").unlink(), "docker is missing and could not be installed"),
        (lambda machine: machine.double("docker", "exit 1"), "docker does not answer to "),
        (
            lambda machine: (machine.double("uname", "echo Darwin"), (machine.programs / "k3d").unlink()),
            "missing: k3d. Run: brew install k3d kubectl && brew install --cask docker",
        ),
    ],
    ids=["no docker", "no daemon", "macOS"],
)
def test_what_a_person_has_to_do_is_one_sentence(
    machine: Machine, prepare: Callable[[Machine], object], sentence: str
) -> None:
    prepare(machine)
    done = machine.run("bootstrap.sh")
    assert done.returncode == 1
    assert sentence in done.stderr.splitlines()[-1]
    assert not [call for call in machine.calls() if call.startswith("k3d cluster create")]


@pytest.mark.covers("A23")
def test_teardown_deletes_what_bootstrap_made_and_can_be_repeated(machine: Machine) -> None:
    machine.run("bootstrap.sh")
    machine.calls()
    assert machine.run("teardown.sh").returncode == 0
    assert "k3d cluster delete ops-demo" in machine.calls()
    assert list(machine.state.iterdir()) == []
    again = machine.run("teardown.sh")
    assert again.returncode == 0
    assert "k3d cluster delete ops-demo" not in machine.calls()


@pytest.fixture(scope="module")
def objects() -> dict[tuple[str, str], dict]:
    """Every object of the manifests, read by kubectl itself without a server."""
    kubectl = shutil.which("kubectl", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if kubectl is None:
        pytest.skip("kubectl is not installed (dependency group test)")
    arguments = [
        "annotate",
        "--local",
        "--output=json",
        "--recursive",
        f"--filename={K3D / 'manifests'}",
        "read-by=test",
    ]
    done = subprocess.run(
        [kubectl, "--kubeconfig=/dev/null", *arguments], env={"HOME": "/nonexistent"}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    found: dict[tuple[str, str], dict] = {}
    decoder, text = json.JSONDecoder(), done.stdout.strip()
    while text:
        item, end = decoder.raw_decode(text)
        if item["kind"] != "Kustomization":
            found[item["kind"], item["metadata"]["name"]] = item
        text = text[end:].lstrip()
    return found


@pytest.mark.covers("A23")
def test_the_manifests_hold_the_four_workloads_with_limits(objects: dict[tuple[str, str], dict]) -> None:
    assert ("Namespace", "demo") in objects
    deployments = {name: item for (kind, name), item in objects.items() if kind == "Deployment"}
    assert set(deployments) == {"payments-api", "web", "redis", "helpdesk"}
    for name, item in deployments.items():
        assert item["metadata"]["namespace"] == "demo", name
        (container,) = item["spec"]["template"]["spec"]["containers"]
        assert set(container["resources"]) == {"requests", "limits"}, name
        assert ":" in container["image"], name


@pytest.mark.covers("A23")
def test_payments_api_really_dies_with_the_words_of_the_demo(objects: dict[tuple[str, str], dict]) -> None:
    (container,) = objects["Deployment", "payments-api"]["spec"]["template"]["spec"]["containers"]
    settings = objects["ConfigMap", "payments-api"]["data"]
    done = subprocess.run(container["command"], env={**os.environ, **settings}, capture_output=True, text=True)
    assert done.returncode == 78
    assert "FATAL payments-api cannot start: invalid PAYMENTS_TIMEOUT_MS" in done.stdout
    log = (K3D.parent / "demo_workspace/logs/payments-api.log").read_text("utf-8")
    assert "FATAL payments-api cannot start: invalid PAYMENTS_TIMEOUT_MS" in log


@pytest.mark.covers("A10", "A12")
def test_the_tools_account_reads_and_sees_no_secret(objects: dict[tuple[str, str], dict]) -> None:
    rules = objects["ClusterRole", "ops-reader"]["rules"]
    assert {verb for rule in rules for verb in rule["verbs"]} == {"get", "list", "watch"}
    resources = {resource for rule in rules for resource in rule["resources"]}
    assert {"pods", "pods/log", "events", "configmaps"} <= resources
    assert not resources & {"secrets", "*", "pods/exec"}
    assert not any("*" in rule["apiGroups"] for rule in rules)
