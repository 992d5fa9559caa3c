"""A double of a Kubernetes API server on loopback. It is no cluster, and nothing here pretends that it is.

It exists to show what a real API server cannot be asked for: a server that never answers, refused credentials, broken
TLS; and to record every request, so that a test can say which ones kubectl sent.
"""

import base64
import json
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

TOKEN = "bearer-CANARY-4d1e77"
"""The credential in every kubeconfig written here."""

CERTIFICATE = Path(__file__).parent / "data" / "selfsigned.pem"

_CORE = ("configmaps", "events", "namespaces", "pods", "secrets", "services")
_KINDS = {
    "configmaps": "ConfigMap",
    "events": "Event",
    "namespaces": "Namespace",
    "pods": "Pod",
    "secrets": "Secret",
    "services": "Service",
}
_NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "demo"}}


@dataclass
class ApiDouble:
    """What the double serves and what it was asked."""

    objects: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """Plural of a kind to its objects; the namespace `demo` is always there."""
    log: str = ""
    status: int | None = None
    """Answer everything with this status."""
    requests: list[tuple[str, str]] = field(default_factory=list)
    """Method and path of every request, in order."""
    headers: list[Mapping[str, str]] = field(default_factory=list)
    url: str = ""

    @property
    def methods(self) -> set[str]:
        """The methods that arrived."""
        return {method for method, _ in self.requests}

    def answer(self, path: str) -> tuple[int, Any]:
        """Return status and body for a path without its query."""
        if self.status is not None:
            return self.status, _failure(self.status)
        if path == "/api":
            return 200, {"kind": "APIVersions", "versions": ["v1"]}
        if path == "/apis":
            return 200, {"kind": "APIGroupList", "apiVersion": "v1", "groups": []}
        if path == "/api/v1":
            return 200, {"kind": "APIResourceList", "groupVersion": "v1", "resources": [_resource(k) for k in _CORE]}
        return self._objects(path.removeprefix("/api/v1/").split("/"))

    def _objects(self, parts: list[str]) -> tuple[int, Any]:
        if parts[0] == "namespaces" and len(parts) > 2:
            parts = parts[2:]
        kind, name = parts[0], parts[1] if len(parts) > 1 else None
        if parts[2:] == ["log"]:
            return 200, self.log
        objects = [_NAMESPACE] if kind == "namespaces" else self.objects.get(kind, [])
        if name is None:
            return 200, {
                "kind": f"{_KINDS[kind]}List",
                "apiVersion": "v1",
                "metadata": {"resourceVersion": "1"},
                "items": objects,
            }
        for item in objects:
            if item["metadata"]["name"] == name:
                return 200, item
        return 404, _failure(404, f'{kind} "{name}" not found')


class ClusterDouble(ApiDouble):
    """An API server with a kube-system namespace, and no object of any kind."""

    kinds: Mapping[str, Sequence[str]] = {
        "apps/v1": ("deployments", "replicasets", "statefulsets", "daemonsets"),
        "batch/v1": ("jobs", "cronjobs"),
        "networking.k8s.io/v1": ("ingresses", "networkpolicies"),
        "autoscaling/v2": ("horizontalpodautoscalers",),
        "v1": ("pods", "services", "configmaps", "namespaces", "persistentvolumeclaims", "replicationcontrollers"),
    }

    def answer(self, path: str) -> tuple[int, Any]:
        version, _, plural = path.removeprefix("/apis/").removeprefix("/api/").rpartition("/")
        if path == "/apis":
            return 200, {"kind": "APIGroupList", "apiVersion": "v1", "groups": [*map(_group, self.kinds)][:-1]}
        if f"{version}/{plural}".removeprefix("/") in self.kinds:
            version = f"{version}/{plural}".removeprefix("/")
            listed = [_listed(kind) for kind in self.kinds[version]]
            return 200, {"kind": "APIResourceList", "groupVersion": version, "resources": listed}
        if plural in self.kinds.get(version, ()):
            return 200, {"kind": f"{plural.title()}List", "apiVersion": version, "items": []}
        if path.endswith("/namespaces/kube-system"):
            metadata = {"name": "kube-system", "uid": "0b1c-uid"}
            return 200, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
        return super().answer(path)


def _group(version: str) -> dict[str, Any]:
    served = {"groupVersion": version, "version": version.rpartition("/")[2]}
    return {"name": version.partition("/")[0], "versions": [served], "preferredVersion": served}


def _listed(plural: str) -> dict[str, Any]:
    return {"name": plural, "kind": plural.title(), "namespaced": plural != "namespaces", "verbs": ["get", "list"]}


def _resource(plural: str) -> dict[str, Any]:
    return {
        "name": plural,
        "singularName": plural[:-1],
        "kind": _KINDS[plural],
        "namespaced": plural != "namespaces",
        "verbs": ["get", "list", "delete", "create", "update", "patch", "watch"],
        "shortNames": [],
    }


def _failure(code: int, message: str = "said by the double") -> dict[str, Any]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "message": message,
        "reason": _REASONS[code],
        "code": code,
    }


_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}
"""Words of the API for its statuses."""


@contextmanager
def serving(double: ApiDouble, *, tls: bool = False) -> Iterator[ApiDouble]:
    """Serve `double` on a free loopback port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_any(self) -> None:
            double.requests.append((self.command, self.path))
            double.headers.append(dict(self.headers))
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            code, body = double.answer(self.path.partition("?")[0])
            is_text = isinstance(body, str)
            data = body.encode() if is_text else json.dumps(body).encode()
            self.send_response(code)
            self.send_header("Content-Type", "text/plain" if is_text else "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_any  # noqa: N815 -- the names that http.server looks for

        def log_message(self, *_: Any) -> None:
            """Say nothing on stderr."""

    class QuietServer(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: Any) -> None:
            """A client that hangs up in a TLS handshake is what a test is about."""

    server = QuietServer(("127.0.0.1", 0), Handler)
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATE)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    double.url = f"{'https' if tls else 'http'}://127.0.0.1:{server.server_address[1]}"
    try:
        yield double
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def silent_server() -> Iterator[str]:
    """Accept connections and never answer; yields the URL."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def unused_url() -> str:
    """Return a URL where nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"http://127.0.0.1:{listener.getsockname()[1]}"


def write_kubeconfig(folder: Path, url: str, *, trusted: bool = False, **user: Any) -> Path:
    """Write a kubeconfig with one context `double` for `url`; `trusted` makes the double's certificate a known one."""
    cluster = {"server": url}
    if trusted:
        cluster["certificate-authority-data"] = base64.b64encode(CERTIFICATE.read_bytes()).decode()
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "double", "cluster": cluster}],
        "users": [{"name": "double", "user": user or {"token": TOKEN}}],
        "contexts": [{"name": "double", "context": {"cluster": "double", "user": "double", "namespace": "demo"}}],
        "current-context": "double",
    }
    path = folder / "double.kubeconfig"
    path.write_text(json.dumps(config, indent=1))
    return path
