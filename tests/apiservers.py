"""Real API servers that a test may stop, and a slow line to one: further processes, beside the session's cluster."""

import asyncio
import base64
import json
import signal
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from realcluster import RealCluster


@dataclass(frozen=True)
class FurtherServer:
    """A second API server of the cluster, on the same etcd."""

    port: int
    process: subprocess.Popen[bytes]

    def freeze(self) -> None:
        """Let it accept connections and never answer."""
        self.process.send_signal(signal.SIGSTOP)

    def kill(self) -> None:
        """End it."""
        self.process.kill()
        self.process.wait()


@contextmanager
def further_server(cluster: RealCluster, folder: Path, *, certificate: Path | None = None) -> Iterator[FurtherServer]:
    """Start an API server as the cluster's own is started, and end it afterwards, frozen or not.

    Args:
        cluster: The cluster whose objects it serves.
        folder: Its log, its audit log and its kubeconfig go there.
        certificate: What it shows to clients, with its key beside it; else the certificate of the cluster's own.
    """
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    pid = (cluster.run / "pids" / "kube-apiserver").read_text(encoding="utf-8").split()[0]
    own = Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").decode("utf-8").split("\0")
    other = {"--secure-port": str(port), "--audit-log-path": str(folder / "audit")}
    if certificate is not None:
        other |= {"--tls-cert-file": str(certificate), "--tls-private-key-file": str(certificate.with_suffix(".key"))}
    command = [f"{name}={other[name]}" if (name := word.partition("=")[0]) in other else word for word in own]
    with (folder / "apiserver.log").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    try:
        ready = ("--insecure-skip-tls-verify", "get", "--raw=/readyz")
        admin = cluster.altered(folder, "admin", port=port)
        without_authority(admin)

        def said() -> str:
            return cluster.attempt(*ready, kubeconfig=admin).stdout

        cluster.until("the further API server", said, lambda text: text == "ok")
        yield FurtherServer(port, process)
    finally:
        process.kill()
        process.wait()


def without_authority(kubeconfig: Path) -> None:
    """Take the authority out of a kubeconfig: whose certificate is trusted is then the machine's matter."""
    config = json.loads(kubeconfig.read_text(encoding="utf-8"))
    config["clusters"][0]["cluster"].pop("certificate-authority", None)
    kubeconfig.write_text(json.dumps(config, indent=1), encoding="utf-8")


def expired_certificate(cluster: RealCluster, folder: Path) -> Path:
    """Make a certificate for loopback that the cluster's own authority signed and that ended yesterday."""
    pki, made = cluster.run / "pki", folder / "expired.crt"
    key, request, extensions = made.with_suffix(".key"), folder / "expired.csr", folder / "expired.ext"
    extensions.write_text("subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth\n", encoding="utf-8")
    new = ["req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=kube-apiserver", "-keyout", key, "-out", request]
    authority = ["-CA", pki / "ca.crt", "-CAkey", pki / "ca.key", "-set_serial", "77"]
    signed = ["x509", "-req", "-in", request, *authority, "-days", "-1", "-extfile", extensions, "-out", made]
    for arguments in (new, signed):
        subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)
    return made


@dataclass(frozen=True)
class Line:
    """How a connection to an API server behaves, in the direction of the answers."""

    pause: float = 0.0
    """Seconds before each piece."""
    piece: int = 65536
    """Most bytes of one."""
    ends_after: int | None = None
    """It breaks after this many bytes."""


@asynccontextmanager
async def line_to(port: int, line: Line) -> AsyncIterator[int]:
    """Serve a line to a loopback port, and yield the port where it begins. TLS goes through it untouched."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answers, questions = await asyncio.open_connection("127.0.0.1", port)
        asking = asyncio.ensure_future(_passed_on(reader, questions))
        left = line.ends_after
        with suppress(OSError, asyncio.CancelledError):
            while (data := await answers.read(line.piece if left is None else min(line.piece, left))) != b"":
                await asyncio.sleep(line.pause)
                writer.write(data)
                await writer.drain()
                left = None if left is None else left - len(data)
        asking.cancel()
        for each in (questions, writer):
            each.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def _passed_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()


def signed_token(claims: dict[str, object], key: Path, of: str) -> str:
    """Return a service account's token with other claims, signed with the cluster's own key, RS256.

    Args:
        claims: What replaces the claims of the same names.
        key: The private key.
        of: A token of the account.
    """
    head, body, _ = of.split(".")
    changed = json.loads(_decoded(body)) | claims
    signed = f"{head}.{_encoded(json.dumps(changed).encode('utf-8'))}"
    made = subprocess.run(
        ["openssl", "dgst", "-sha256", "-sign", str(key)], input=signed.encode("ascii"), capture_output=True, check=True
    )
    return f"{signed}.{_encoded(made.stdout)}"


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode("ascii").rstrip("=")
