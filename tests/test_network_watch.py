import asyncio
import os
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from mcp_ops.evaluation.watching.network import NetworkWatch

pytestmark = pytest.mark.covers("H2")

ELSEWHERE = ("203.0.113.7", 443)  # TEST-NET-3: nobody answers there


def quietly(act: Callable[[], object]) -> None:
    with suppress(OSError):
        act()


def watching(act: Callable[[], object]) -> NetworkWatch:
    watch = NetworkWatch(Path(__file__).parent)
    with watch.armed():
        quietly(act)
    return watch


def connect() -> None:
    with socket.socket() as sock:
        sock.connect(ELSEWHERE)


def connect_ex() -> None:
    with socket.socket() as sock:
        sock.connect_ex(ELSEWHERE)


def send_udp() -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as sock:
        sock.sendto(b"x", ELSEWHERE)


def send_message() -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as sock:
        sock.sendmsg([b"x"], [], 0, ELSEWHERE)


def connect_v6() -> None:
    with socket.socket(socket.AF_INET6) as sock:
        sock.connect(("2001:db8::1", 80))


@pytest.mark.parametrize(
    ("act", "what"),
    [
        (connect, "connect to 203.0.113.7:443"),
        (connect_ex, "connect to 203.0.113.7:443"),
        (send_udp, "connect to 203.0.113.7:443"),
        (send_message, "connect to 203.0.113.7:443"),
        (connect_v6, "connect to 2001:db8::1:80"),
        (lambda: socket.getaddrinfo("example.invalid", 80), "look up example.invalid"),
        (lambda: socket.getaddrinfo(b"example.invalid", 80), "look up example.invalid"),
        (lambda: socket.gethostbyname("example.invalid"), "look up example.invalid"),
        (lambda: socket.gethostbyaddr("example.invalid"), "look up example.invalid"),
        (lambda: socket.getaddrinfo("203.0.113.7.example.invalid", None), "look up 203.0.113.7.example.invalid"),
    ],
)
def test_every_way_out_is_seen_and_names_the_call_site(act: Callable[[], None], what: str) -> None:
    (use,) = watching(act).uses
    assert use.what == what
    assert use.site.startswith("test_network_watch.py:")
    assert str(use) == f"{what}, from {use.site}"


def test_an_attempt_fails_as_if_there_were_no_network() -> None:
    watch = NetworkWatch(Path.cwd())
    with watch.armed():
        with pytest.raises(ConnectionRefusedError, match="a mock run has no network"):
            connect()
        with pytest.raises(socket.gaierror, match="a mock run has no network"):
            socket.getaddrinfo("example.invalid", 80)


def reach_loopback() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname()).close()
        socket.create_connection(("localhost", server.getsockname()[1])).close()


def reach_mapped_loopback() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_INET6) as sock:
        sock.connect(("::ffff:127.0.0.1", server.getsockname()[1]))


def reach_unix_socket() -> None:
    first, second = socket.socketpair()
    first.close()
    second.close()
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect_ex("\0opsagent-nobody-listens")


@pytest.mark.parametrize(
    "act",
    [
        reach_loopback,
        reach_mapped_loopback,
        reach_unix_socket,
        lambda: socket.getaddrinfo("127.0.0.1", 80),
        lambda: socket.getaddrinfo("203.0.113.7", 80),
        lambda: socket.getaddrinfo(None, 80),
        lambda: socket.getaddrinfo("localhost", 80),
    ],
)
def test_what_stays_on_the_machine_is_no_hit(act: Callable[[], None]) -> None:
    assert watching(act).uses == ()


def test_nothing_is_seen_or_refused_when_no_watch_is_armed() -> None:
    watch = watching(lambda: None)
    with socket.socket(type=socket.SOCK_DGRAM) as sock:
        try:
            sock.connect(ELSEWHERE)
        except OSError as error:
            assert "mock run" not in str(error)  # noqa: PT017 - a machine without a route may refuse by itself
    assert watch.uses == ()


def test_other_threads_are_seen_too() -> None:
    thread = threading.Thread(target=lambda: quietly(connect))

    def act() -> None:
        thread.start()
        thread.join()

    assert [use.what for use in watching(act).uses] == ["connect to 203.0.113.7:443"]


async def test_a_look_up_of_the_event_loop_names_the_coroutine_that_asked() -> None:
    watch = NetworkWatch(Path(__file__).parent)

    async def fetch() -> None:
        await asyncio.get_running_loop().getaddrinfo("example.invalid", 443)

    with watch.armed(), pytest.raises(socket.gaierror):
        await fetch()
    assert [use.what for use in watch.uses] == ["look up example.invalid"]
    assert watch.uses[0].site.endswith(" in fetch")


async def test_a_connection_that_asyncio_opens_is_seen_although_its_error_is_swallowed() -> None:
    watch = NetworkWatch(Path(__file__).parent)
    with watch.armed():
        results = await asyncio.gather(asyncio.open_connection(*ELSEWHERE), return_exceptions=True)
    assert isinstance(results[0], OSError)
    assert [use.what for use in watch.uses] == ["connect to 203.0.113.7:443"]


async def test_the_loop_still_resolves_loopback_names_while_armed() -> None:
    with NetworkWatch(Path.cwd()).armed():
        found = await asyncio.get_running_loop().getaddrinfo("localhost", 80, type=socket.SOCK_STREAM)
    assert found


def test_the_same_target_is_reported_once() -> None:
    def twice() -> None:
        connect_ex_quietly()
        connect_ex_quietly()

    assert len(watching(twice).uses) == 1


def connect_ex_quietly() -> None:
    quietly(connect_ex)


def test_two_watches_at_once_both_see() -> None:
    outer = NetworkWatch(Path.cwd())
    with outer.armed():
        inner = watching(connect)
    assert len(outer.uses) == len(inner.uses) == 1


def test_proxies_leave_the_environment_while_armed_and_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example.invalid:3128")
    monkeypatch.setenv("no_proxy", "*")
    with NetworkWatch(Path.cwd()).armed():
        assert not {"HTTPS_PROXY", "no_proxy"} & os.environ.keys()
    assert os.environ["HTTPS_PROXY"] == "http://proxy.example.invalid:3128"
    assert os.environ["no_proxy"] == "*"
