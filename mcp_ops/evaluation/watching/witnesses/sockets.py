"""The witness of sockets that a run leaves open for others to connect to.

In this process it sees sockets that listen; a connection there may as well be the model's or a plugin's. In processes
that a run left over it sees every socket of TCP and UDP, and those of Unix that listen.
"""

import os
import re
import socket
import stat
import sys
from collections.abc import Iterator
from contextlib import suppress
from ipaddress import IPv6Address, ip_address
from pathlib import Path

from mcp_ops.evaluation.watching.witnesses.base import Effect
from mcp_ops.evaluation.watching.witnesses.processes import ProcessWitness
from mcp_ops.text import one_line

_OWN_FILES = "/proc/self/fd"
_INTERNET = ("tcp", "tcp6", "udp", "udp6")
_STATES = {"01": "connected", "0A": "listening", "07": "bound"}
"""Of the kernel's numbers for the states of a socket. A UDP socket without a peer is 07."""
_ACCEPTS = 0x10000
"""Flag of a Unix socket that listens, in /proc/net/unix."""


class SocketWitness:
    """Sees sockets that are open after a run and were not before. Linux only.

    Args:
        processes: Knows what the run left over. It looks before this one does.
    """

    name = "sockets"

    def __init__(self, processes: ProcessWitness) -> None:
        self._processes = processes
        self._known: frozenset[int] = frozenset()

    def before(self) -> None:
        """Remember the sockets of this process."""
        self._known = frozenset(_own_sockets())

    def after(self) -> list[Effect]:
        """Return one effect for each socket that is left over."""
        own = _own_sockets()
        found = [
            Effect("left_over", address, "listening in this process")
            for inode, handle in own.items()
            if inode not in self._known and (address := _listening_address(handle))
        ]
        for process in self._processes.left:
            found += [
                Effect("left_over", address, f"{state} in pid {process.pid}")
                for address, state in _sockets_of(process.pid)
            ]
        return list(dict.fromkeys(found))


def _own_sockets() -> dict[int, int]:
    """Return the sockets that this process has open, by inode."""
    found: dict[int, int] = {}
    for handle in map(int, os.listdir(_OWN_FILES)):  # noqa: PTH208 - a path for each would double the cost
        try:
            status = os.fstat(handle)
        except OSError:
            continue
        if stat.S_ISSOCK(status.st_mode):
            found[status.st_ino] = handle
    return found


def _listening_address(handle: int) -> str:
    """Return where a socket of this process listens; empty when it does not."""
    with suppress(OSError), socket.socket(fileno=os.dup(handle)) as own:
        if own.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            return _shown(own.getsockname())
    return ""


def _shown(address: object) -> str:
    if isinstance(address, tuple):
        return _host_and_port(str(address[0]), int(address[1]))
    if isinstance(address, bytes):
        address = "@" + address[1:].decode("utf-8", "replace")
    return one_line(str(address)) or "a socket without a name"


def _host_and_port(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _sockets_of(pid: int) -> Iterator[tuple[str, str]]:
    """Yield address and state of the sockets of another process."""
    inodes = _inodes_of(pid)
    for table in _INTERNET if inodes else ():
        for row in _rows(pid, table):
            if row[9] in inodes and row[3] in _STATES:
                yield _internet_address(row[1]), _STATES[row[3]]
    for row in _rows(pid, "unix") if inodes else ():
        if row[6] in inodes and int(row[3], 16) & _ACCEPTS:
            yield one_line(row[7] if len(row) > 7 else "a socket without a name"), "listening"


def _inodes_of(pid: int) -> set[str]:
    found = set()
    with suppress(OSError), os.scandir(f"/proc/{pid}/fd") as listing:
        for entry in listing:
            with suppress(OSError):
                target = re.fullmatch(r"socket:\[([0-9]+)\]", str(Path(entry.path).readlink()))
                found |= {target[1]} if target else set()
    return found


def _rows(pid: int, table: str) -> list[list[str]]:
    """Return the table of a process' own network, without its heading."""
    try:
        text = Path(f"/proc/{pid}/net/{table}").read_text("utf-8", "replace")
    except OSError:
        return []
    return [line.split(maxsplit=7 if table == "unix" else -1) for line in text.splitlines()[1:]]


def _internet_address(written: str) -> str:
    """Return `127.0.0.1:8080` for `0100007F:1F90`: words of four bytes in the order of the machine."""
    host, _, port = written.partition(":")
    words = [int(host[start : start + 8], 16).to_bytes(4, sys.byteorder) for start in range(0, len(host), 8)]
    address = ip_address(b"".join(words))
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    return _host_and_port(str(address), int(port, 16))
