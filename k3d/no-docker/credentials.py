"""Who may speak to the cluster: certificates, tokens and kubeconfigs."""

import json
import os
import secrets
from pathlib import Path

from places import Places
from processes import run

CONTEXT = "no-docker-ops-demo"
NODE_NAME = "localhost"
"""The API server reaches the kubelet by this name."""
_ACCOUNTS = {
    "admin": ("admin", "admin", "system:masters"),
    "node": (f"system:node:{NODE_NAME}", "node", "system:nodes"),
    "controllers": ("system:kube-controller-manager", "controllers", ""),
    "scheduler": ("system:kube-scheduler", "scheduler", ""),
}
"""Name of the kubeconfig, then user, uid and group as the API server's token file has them."""


def make_credentials(places: Places, port: int) -> None:
    """Make a certificate authority, certificates, tokens and kubeconfigs, unless they are there."""
    pki = places.run / "pki"
    if (pki / "tokens.csv").exists():
        return
    key, certificate = pki / "ca.key", pki / "ca.crt"
    own = ["-x509", "-nodes", "-newkey", "rsa:2048", "-days", "365", "-subj", "/CN=ops-demo-ca"]
    run(["openssl", "req", *own, "-keyout", key, "-out", certificate])
    names = "IP:127.0.0.1,DNS:localhost,IP:10.96.0.1,DNS:kubernetes.default.svc"
    _make_certificate(pki, "apiserver", "/CN=kube-apiserver", names)
    _make_certificate(pki, "kubelet-client", "/O=system:masters/CN=kube-apiserver-kubelet-client", "DNS:client")
    run(["openssl", "genrsa", "-out", pki / "accounts.key", "2048"])
    run(["openssl", "rsa", "-in", pki / "accounts.key", "-pubout", "-out", pki / "accounts.pub"])
    tokens = {name: secrets.token_hex(16) for name in _ACCOUNTS}
    for name, token in tokens.items():
        write_kubeconfig(places, name, token, port)
    lines = [",".join((tokens[name], *account)) for name, account in _ACCOUNTS.items()]
    _write_private(pki / "tokens.csv", "\n".join(lines) + "\n")


def _make_certificate(pki: Path, name: str, subject: str, alternative_names: str) -> None:
    """Make a key and a certificate that our authority signed."""
    key, request, extensions = pki / f"{name}.key", pki / f"{name}.csr", pki / f"{name}.ext"
    extensions.write_text(
        f"subjectAltName={alternative_names}\nextendedKeyUsage=serverAuth,clientAuth\n", encoding="utf-8"
    )
    run(["openssl", "req", "-newkey", "rsa:2048", "-nodes", "-subj", subject, "-keyout", key, "-out", request])
    authority = ["-CA", pki / "ca.crt", "-CAkey", pki / "ca.key", "-CAcreateserial", "-days", "365"]
    signed = ["-extfile", extensions, "-out", pki / f"{name}.crt"]
    run(["openssl", "x509", "-req", "-in", request, *authority, *signed])


def write_kubeconfig(places: Places, account: str, token: str, port: int) -> None:
    """Write the kubeconfig of an account. It is JSON, which is YAML too."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": CONTEXT,
        "clusters": [
            {
                "name": CONTEXT,
                "cluster": {
                    "server": f"https://127.0.0.1:{port}",
                    "certificate-authority": str(places.run / "pki" / "ca.crt"),
                },
            }
        ],
        "contexts": [{"name": CONTEXT, "context": {"cluster": CONTEXT, "user": account, "namespace": "demo"}}],
        "users": [{"name": account, "user": {"token": token}}],
    }
    _write_private(places.kubeconfig(account), json.dumps(content, indent=2) + "\n")


def _write_private(path: Path, text: str) -> None:
    """Write a file that only its owner may read, whole or not at all."""
    part = path.with_name(path.name + ".part")
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    part.replace(path)
