"""Sees every connection and look-up of this process that is not loopback, and refuses it, while a mock run goes on.

An audit hook cannot be removed, so it is installed once and looks only while a watch is armed. It sees what goes
through Python's `socket` module in any thread. It does not see child processes, nor libraries that resolve and connect
in C by themselves.
"""

import asyncio
import errno
import ipaddress
import os
import socket
import sys
import sysconfig
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

_CONNECTS = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})
_LOOKUPS = frozenset({"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr", "socket.getnameinfo"})
_LOOPBACK_NAMES = frozenset({"", "localhost", "localhost.", "ip6-localhost", "ip6-loopback"})
_PATHS = {name: sysconfig.get_path(name) + os.sep for name in ("purelib", "platlib", "scripts", "stdlib", "platstdlib")}
_INSTALLED = (*_PATHS.values(), "<")
_STANDARD = (_PATHS["stdlib"], _PATHS["platstdlib"], "<")


@dataclass(frozen=True)
class NetworkUse:
    """One attempt to leave the machine."""

    what: str
    """`connect to 203.0.113.7:443`, `look up api.example.com`."""
    site: str
    """`tests/agent.py:12 in fetch`: the innermost frame outside installed code, where there is one."""

    def __str__(self) -> str:
        return f"{self.what}, from {self.site}"


class NetworkWatch:
    """Collects what would have left the machine while it is armed. Each attempt fails as if there were no network."""

    def __init__(self, rootdir: Path) -> None:
        self._rootdir = rootdir
        self._seen: dict[str, NetworkUse] = {}

    @property
    def uses(self) -> tuple[NetworkUse, ...]:
        """Every attempt so far, each kind and target once, in order."""
        return tuple(self._seen.values())

    @contextmanager
    def armed(self) -> Iterator[None]:
        """Watch and refuse until the block ends; take proxies out of the environment meanwhile."""
        _install()
        with _without_proxies():
            _watches.append(self)
            try:
                yield
            finally:
                _watches.remove(self)

    def note(self, what: str, frame: FrameType | None) -> None:
        """Keep one attempt. The first call site of a target wins: a look-up is seen again in its worker thread."""
        if what not in self._seen:
            self._seen[what] = NetworkUse(what, _call_site(frame, self._rootdir))


_watches: list[NetworkWatch] = []
_installing = threading.Lock()
_installed = False


def _install() -> None:
    global _installed  # noqa: PLW0603 - a hook cannot be removed, so there is one for the process
    with _installing:
        if not _installed:
            _installed = True
            sys.addaudithook(_hook)
            _wrap_loop_lookups()


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if not _watches or not event.startswith("socket."):
        return
    if event in _CONNECTS:
        target = _outside_address(arguments[0], arguments[1])
        if target is not None:
            _refuse(f"connect to {target}", ConnectionRefusedError, errno.ECONNREFUSED)
    elif event in _LOOKUPS:
        name = _outside_name(arguments[0])
        if name is not None:
            _refuse(f"look up {name}", socket.gaierror, socket.EAI_FAIL)


def _refuse(what: str, error: type[OSError], number: int) -> None:
    frame = sys._getframe(2)
    for watch in tuple(_watches):
        watch.note(what, frame)
    raise error(number, f"a mock run has no network: {what}")


def _outside_address(sock: socket.socket, address: object) -> str | None:
    """Return an address as text if it is of the internet family and not this machine's."""
    if sock.family not in (socket.AF_INET, socket.AF_INET6) or not isinstance(address, tuple) or len(address) < 2:
        return None
    name = _outside_name(address[0], numeric_too=True)
    return None if name is None else f"{name}:{address[1]}"


def _outside_name(host: object, *, numeric_too: bool = False) -> str | None:
    """Return a host as text if reaching it, or looking it up, may leave the machine."""
    if isinstance(host, tuple):
        host = host[0]
    if isinstance(host, bytes | bytearray):
        host = bytes(host).decode("ascii", "backslashreplace")
    if not isinstance(host, str) or host.casefold() in _LOOPBACK_NAMES:
        return None
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    mapped = getattr(address, "ipv4_mapped", None) or address
    return None if mapped.is_loopback or mapped.is_unspecified or not numeric_too else host


def _call_site(frame: FrameType | None, rootdir: Path) -> str:
    frames = []
    while frame is not None:
        if frame.f_code.co_filename != __file__:
            frames.append(frame)
        frame = frame.f_back
    for library in (_INSTALLED, _STANDARD, ()):
        for frame in frames:
            name = frame.f_code.co_filename
            if not name.startswith(library):
                return f"{_relative(name, rootdir)}:{frame.f_lineno} in {frame.f_code.co_name}"
    return "an unknown place"


def _relative(name: str, rootdir: Path) -> str:
    path = Path(name)
    return str(path.relative_to(rootdir)) if path.is_relative_to(rootdir) else name


def _wrap_loop_lookups() -> None:
    """Note look-ups where the loop is asked: it asks the resolver in a worker thread, whose stack says nothing."""
    original = asyncio.BaseEventLoop.getaddrinfo

    async def getaddrinfo(self: asyncio.BaseEventLoop, host: Any, port: Any, **options: Any) -> Any:
        name = _outside_name(host) if _watches else None
        if name is not None:
            _refuse(f"look up {name}", socket.gaierror, socket.EAI_FAIL)
        return await original(self, host, port, **options)

    asyncio.BaseEventLoop.getaddrinfo = getaddrinfo  # type: ignore[method-assign]


@contextmanager
def _without_proxies() -> Iterator[None]:
    kept = {name: os.environ.pop(name) for name in list(os.environ) if name.casefold().endswith("_proxy")}
    try:
        yield
    finally:
        os.environ.update(kept)
