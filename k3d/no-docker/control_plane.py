"""etcd, the API server, the controllers and the scheduler."""

import json
import ssl
import urllib.request
from collections.abc import Mapping
from pathlib import Path

from places import Places
from processes import start, wait_for

AUDIT_POLICY = Path(__file__).resolve().parent / "config" / "audit-policy.yaml"


def start_control_plane(places: Places, ports: Mapping[str, int]) -> None:
    """Start etcd, API server, controllers and scheduler, and wait until they work."""
    etcd, peer = (f"http://127.0.0.1:{ports[name]}" for name in ("etcd", "etcd_peer"))
    etcd_options = [
        "--name=default",
        f"--data-dir={places.run / 'etcd'}",
        f"--listen-client-urls={etcd}",
        f"--advertise-client-urls={etcd}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--log-level=warn",
        "--unsafe-no-fsync",
    ]
    start(places, "etcd", [places.debian / "usr/bin/etcd", *etcd_options])
    start(places, "kube-apiserver", [places.home / "bin/kube-apiserver", *_api_server_options(places, ports, etcd)])
    wait_for("the API server", lambda: api(places, "/readyz") == b"ok", places, "kube-apiserver")
    for name, options in (
        ("kube-controller-manager", _controller_options(places, ports)),
        ("kube-scheduler", [f"--kubeconfig={places.kubeconfig('scheduler')}", f"--secure-port={ports['scheduler']}"]),
    ):
        shared = ["--leader-elect=false", "--bind-address=127.0.0.1", "--port=0", f"--cert-dir={places.run / 'certs'}"]
        start(places, name, [places.home / "bin" / name, *options, *shared])
    account = "/api/v1/namespaces/default/serviceaccounts/default"
    wait_for("the controllers", lambda: bool(api(places, account)), places, "kube-controller-manager")


def _api_server_options(places: Places, ports: Mapping[str, int], etcd: str) -> list[str]:
    pki = places.run / "pki"
    return [
        f"--etcd-servers={etcd}",
        "--bind-address=127.0.0.1",
        f"--secure-port={ports['api']}",
        "--endpoint-reconciler-type=none",
        "--service-cluster-ip-range=10.96.0.0/24",
        "--authorization-mode=Node,RBAC",
        "--anonymous-auth=false",
        f"--token-auth-file={pki / 'tokens.csv'}",
        f"--client-ca-file={pki / 'ca.crt'}",
        f"--tls-cert-file={pki / 'apiserver.crt'}",
        f"--tls-private-key-file={pki / 'apiserver.key'}",
        f"--service-account-key-file={pki / 'accounts.pub'}",
        f"--service-account-signing-key-file={pki / 'accounts.key'}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--kubelet-client-certificate={pki / 'kubelet-client.crt'}",
        f"--kubelet-client-key={pki / 'kubelet-client.key'}",
        "--kubelet-preferred-address-types=Hostname",
        f"--audit-policy-file={AUDIT_POLICY}",
        f"--audit-log-path={places.audit_log}",
        "--allow-privileged=true",
        "--profiling=false",
        f"--cert-dir={places.run / 'certs'}",
    ]


def _controller_options(places: Places, ports: Mapping[str, int]) -> list[str]:
    pki = places.run / "pki"
    return [
        f"--kubeconfig={places.kubeconfig('controllers')}",
        f"--secure-port={ports['controllers']}",
        "--use-service-account-credentials=true",
        f"--service-account-private-key-file={pki / 'accounts.key'}",
        f"--root-ca-file={pki / 'ca.crt'}",
        f"--cluster-signing-cert-file={pki / 'ca.crt'}",
        f"--cluster-signing-key-file={pki / 'ca.key'}",
    ]


def api(places: Places, path: str) -> bytes:
    """Return what the API server answers to a GET of the admin.

    Raises:
        OSError: It does not answer, or not with a success.
    """
    config = json.loads(places.kubeconfig("admin").read_text(encoding="utf-8"))
    request = urllib.request.Request(  # noqa: S310 -- our own loopback address
        config["clusters"][0]["cluster"]["server"] + path,
        headers={"Authorization": f"Bearer {config['users'][0]['user']['token']}"},
    )
    context = ssl.create_default_context(cafile=places.run / "pki" / "ca.crt")
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
    with opener.open(request, timeout=5) as answer:
        body: bytes = answer.read()
        return body
