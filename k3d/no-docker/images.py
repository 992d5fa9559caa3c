"""Makes the images of the cluster from one static busybox: no registry and no container engine is involved.

    python3 images.py BUSYBOX FOLDER

Writes `pause.tar`, `busybox.tar`, `web.tar` and `redis.tar` into FOLDER, in the form of `docker save`. `web` stands in
for nginx and answers on port 80; `redis` stands in for redis and says +PONG on port 6379 to whoever connects.
"""

import hashlib
import io
import json
import platform
import sys
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

APPLETS = (
    *("awk", "cat", "date", "echo", "env", "false", "grep", "head", "hostname", "httpd", "id", "kill", "ls", "mkdir"),
    *("nc", "printf", "ps", "sed", "seq", "sh", "sleep", "tail", "test", "touch", "true", "wget"),
)
ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
FOLDERS = ("bin", "dev", "etc", "proc", "root", "sys", "tmp", "var", "www")


def layer(busybox: bytes, files: Mapping[str, str]) -> bytes:
    """Return a file system as a tar archive: busybox, a link for each of its applets, and `files` by path."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for folder in FOLDERS:
            _add(archive, folder, kind=tarfile.DIRTYPE, mode=0o755)
        _add(archive, "bin/busybox", busybox, mode=0o755)
        for applet in APPLETS:
            _add(archive, f"bin/{applet}", kind=tarfile.SYMTYPE, link="busybox")
        for path, text in files.items():
            _add(archive, path, text.encode())
    return buffer.getvalue()


def write_image(
    target: Path, name: str, content: bytes, entrypoint: Sequence[str], command: Sequence[str] = ()
) -> None:
    """Write an image of one layer, named `localhost/NAME:1`."""
    layer_id = hashlib.sha256(content).hexdigest()
    config = {
        "architecture": ARCHITECTURE,
        "os": "linux",
        "created": "2026-01-01T00:00:00Z",
        "config": {"Env": ["PATH=/bin"], "Entrypoint": list(entrypoint), "Cmd": list(command), "WorkingDir": "/"},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer_id}"]},
        "history": [{"created_by": "images.py"}],
    }
    packed = json.dumps(config, sort_keys=True).encode()
    config_name = f"{hashlib.sha256(packed).hexdigest()}.json"
    manifest = [{"Config": config_name, "RepoTags": [f"localhost/{name}:1"], "Layers": [f"{layer_id}/layer.tar"]}]
    with tarfile.open(target, "w") as archive:
        _add(archive, config_name, packed)
        _add(archive, f"{layer_id}/layer.tar", content)
        _add(archive, "manifest.json", json.dumps(manifest).encode())


def write_images(busybox: Path, folder: Path) -> None:
    """Write every image of the cluster into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    plain = layer(busybox.read_bytes(), {})
    web = layer(busybox.read_bytes(), {"www/index.html": "ok\n"})
    write_image(folder / "busybox.tar", "busybox", plain, (), ("sh",))
    write_image(folder / "web.tar", "web", web, ("httpd", "-f", "-p", "80", "-h", "/www"))
    write_image(folder / "redis.tar", "redis", plain, ("sh", "-c", "exec nc -ll -p 6379 -e printf '+PONG\\r\\n'"))
    # Last: whoever looks for a finished build looks for this one.
    write_image(folder / "pause.tar", "pause", plain, ("sleep", "2147483647"))


def _add(
    archive: tarfile.TarFile,
    path: str,
    data: bytes = b"",
    *,
    kind: bytes = tarfile.REGTYPE,
    mode: int = 0o644,
    link: str = "",
) -> None:
    entry = tarfile.TarInfo(path)
    entry.type, entry.mode, entry.linkname, entry.size = kind, mode, link, len(data)
    archive.addfile(entry, io.BytesIO(data))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    write_images(Path(sys.argv[1]), Path(sys.argv[2]))
