"""Calling tools through the gate, and a workspace with everything in it that a guard has to tell apart."""

import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp_ops.gate import Reading, Refuse, Tool, call, read_reply
from mcp_ops.ops.context import OpsContext
from mcp_ops.ops.workspace import Workspace

SECRET = "SECRET-CANARY-7f3a"
OUTSIDE = "OUTSIDE-CANARY-91bc"


@dataclass(frozen=True)
class Reply:
    """What came back from one call."""

    text: str
    structured: dict[str, Any]
    reading: Reading

    @property
    def verdict(self) -> str:
        """`executed`, or the rule that answered."""
        return self.reading.rule or self.reading.state.value


async def ask(
    tool: Tool[Any, Any, Any], context: Any, arguments: dict[str, Any] | None, *, off: Sequence[str] = ()
) -> Reply:
    """Call `tool` the way a server does, with the rules `off` switched off."""
    result = await call({tool.name: tool}, tool.name, arguments, context, refuse=Refuse(frozenset(off)))
    reading = read_reply(result)
    assert reading is not None
    return Reply(result.content[0].text, result.structured_content or {}, reading)  # type: ignore[union-attr]


def make_lab(folder: Path) -> Path:
    """Build `folder/ws` and what lies outside it; return the workspace."""
    outside, ws = folder / "outside", folder / "ws"
    (outside / "sub").mkdir(parents=True)
    (outside / "outside.txt").write_text(f"{OUTSIDE}\n")
    (outside / "sub" / "deep.md").write_text(f"{OUTSIDE} deep\n")
    for name in ("runbooks", "logs", "secrets", "certs", "docs", "deep/a/b"):
        (ws / name).mkdir(parents=True)
    (ws / "runbooks/restart.md").write_text("# Restart payments-api\nraise the timeout\nTODO: rollback\n")
    (ws / "runbooks/secrets-rotation.md").write_text("# Rotating\nrotate it in the vault\n")
    (ws / "docs/secret-management.md").write_text("where secrets live\n")
    (ws / "logs/app.log").write_text("".join(f"line {n} timeout\n" for n in range(1, 301)))
    (ws / "deep/a/b/x.md").write_text("deep payments-api\n")
    (ws / "notes.md~").write_text("a backup\n")
    for name in ("secrets/staging.env", "secrets/README.md", ".env", ".ENV", "certs/tls.key", "credentials.json"):
        (ws / name).write_text(f"PASSWORD={SECRET}\n")
    (ws / "link_file").symlink_to("../outside/outside.txt")
    (ws / "link_dir").symlink_to("../outside")
    (ws / "link_absolute").symlink_to(outside / "outside.txt")
    (ws / "link_ok").symlink_to("runbooks/restart.md")
    (ws / "link_ok_absolute").symlink_to(ws / "runbooks/restart.md")
    (ws / "link_chain").symlink_to("deep/up")
    (ws / "deep/up").symlink_to("../link_ok")
    (ws / "innocent.txt").symlink_to("secrets/staging.env")
    (ws / "loop").symlink_to("loop")
    (ws / "dangling").symlink_to("nowhere.txt")
    os.link(outside / "outside.txt", ws / "hardlink.txt")
    os.mkfifo(ws / "fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        _bind(listener, ws / "socket")
    (ws / "bin.dat").write_bytes(b"\x7fELF\x00\x01" * 100)
    (ws / "crlf.txt").write_bytes(b"\xef\xbb\xbfline1\r\nline2\r\ncaf\xe9 line3\r\n")
    (ws / "empty.txt").touch()
    return ws


def _bind(listener: socket.socket, path: Path) -> None:
    """Bind by a short relative name: a socket's path has room for about a hundred bytes."""
    here = os.open(".", os.O_RDONLY)
    try:
        os.chdir(path.parent)
        listener.bind(path.name)
    finally:
        os.fchdir(here)
        os.close(here)


def context_of(ws: Path, **policy: Any) -> OpsContext:
    """Return a context with a workspace and no cluster."""
    return OpsContext(Workspace(ws, **policy))
