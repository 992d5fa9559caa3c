"""Which cluster `mcp-ops demo` reads when none is named."""

import json
from pathlib import Path

import pytest
from apidouble import ClusterDouble, serving, unused_url, write_kubeconfig
from opsproject import line, needy, script

from mcp_ops.cli import main

PODS = {"tool": "kubectl_get", "args": {"resource": "pods"}}


@pytest.fixture(autouse=True)
def away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A repository with one demo scenario, and no demo cluster of this machine."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPS_DEMO_STATE", str(tmp_path / "k3d"))
    monkeypatch.setenv("OPS_K8S_RUN", str(tmp_path / "no-docker"))
    Path("scenarios").mkdir()
    health = needy("health", mock=script(PODS, "Seen."), expect={"calls": [{"tool": "kubectl_get"}]}, tags=["demo"])
    Path("scenarios/scenarios.jsonl").write_text(json.dumps(health) + "\n", encoding="utf-8")


def write_to(path: str, url: str) -> Path:
    target = Path(path)
    target.parent.mkdir(exist_ok=True)
    return write_kubeconfig(target.parent, url).rename(target.absolute())


@pytest.mark.covers("A22", "A24")
@pytest.mark.parametrize("path", ["k3d/ops-demo.kubeconfig", "no-docker/reader.kubeconfig"])
def test_the_demo_s_own_cluster_is_read_if_it_answers(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(ClusterDouble()) as double:
        write_to(path, double.url)
        assert main(["demo"]) == 0
    err = capsys.readouterr().err
    assert "mcp-ops: what comes from a cluster is real: context double, Kubernetes of unknown version, uid 0b1c" in err
    assert "health needs a cluster" not in err
    assert "cluster double (0b1c-uid)" in err
    assert double.methods == {"GET"}


def test_the_first_one_that_answers_is_taken(capsys: pytest.CaptureFixture[str]) -> None:
    silent = write_to("k3d/ops-demo.kubeconfig", unused_url())
    with serving(ClusterDouble()) as double:
        write_to("no-docker/reader.kubeconfig", double.url)
        assert main(["demo"]) == 0
    err = capsys.readouterr().err
    assert f"mcp-ops: no cluster answers to {silent}: " in err
    assert "context double" in err


@pytest.mark.covers("H33")
def test_the_ambient_cluster_is_not_read(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(ClusterDouble()) as double:
        ambient = write_to("home/.kube", double.url)
        monkeypatch.setenv("KUBECONFIG", str(ambient))
        monkeypatch.setenv("HOME", str(ambient.parent))
        assert main(["demo"]) == 0
    assert double.requests == []
    err = capsys.readouterr().err
    assert "health needs a cluster, which is not here" in err
    assert "cluster_unavailable" in Path("trace.html").read_text(encoding="utf-8")


def test_one_that_is_named_is_the_only_one_that_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    with serving(ClusterDouble()) as double:
        write_to("k3d/ops-demo.kubeconfig", double.url)
        assert main(["demo", "--kubeconfig", "nowhere"]) == 0
    assert double.requests == []
    assert "no cluster answers to " in capsys.readouterr().err


def test_without_a_line_that_needs_one_no_cluster_is_asked() -> None:
    Path("scenarios/scenarios.jsonl").write_text(json.dumps(line("one", tags=["demo"])) + "\n", encoding="utf-8")
    with serving(ClusterDouble()) as double:
        write_to("k3d/ops-demo.kubeconfig", double.url)
        assert main(["demo"]) == 0
    assert double.requests == []
