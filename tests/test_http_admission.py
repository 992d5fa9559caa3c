"""Who may speak to a server on loopback, by the headers of one request."""

import asyncio
import socket

import pytest

from mcp_ops.servers.http import Admission, CannotListen, loopback_socket, url_of

PORT = 3333
HERE = b"127.0.0.1:3333"
TOKEN = "a-token-of-24-characters"

pytestmark = pytest.mark.covers("D6")


def refusal(*headers: tuple[bytes, bytes], **options: object) -> tuple[int, str] | None:
    found = Admission(PORT, **options).refuse(headers)  # type: ignore[arg-type]
    return None if found is None else (found.status, found.sentence)


class TestTheHostHeader:
    @pytest.mark.parametrize("host", [HERE, b"localhost:3333", b"LOCALHOST:3333", b"[::1]:3333", b" localhost:3333 "])
    def test_each_name_of_this_machine_with_the_port_of_the_server_is_let_in(self, host: bytes) -> None:
        assert refusal((b"host", host)) is None

    @pytest.mark.parametrize(
        "host",
        [
            *(b"evil.example", b"evil.example:3333", b"localhost.evil.example:3333", b"127.0.0.1.nip.io:3333"),
            *(b"127.0.0.1", b"127.0.0.1:80", b"127.0.0.1:33330", b"localhost:", b"localhost:3333.evil.example"),
            *(b"0.0.0.0:3333", b"127.1:3333", b"2130706433:3333", b"127.0.0.2:3333", b"::1:3333", b"[::]:3333"),
            *(b"[::ffff:127.0.0.1]:3333", b"localhost.:3333", b"user@localhost:3333", b"localhost:3333/x", b""),
            *(b"localhost:3333, evil.example", b"l\xc3\xb6calhost:3333", b"\xff\xfe"),
        ],
    )
    def test_any_other_host_is_misdirected_and_the_sentence_says_which_are_meant(self, host: bytes) -> None:
        found = refusal((b"host", host))
        assert found is not None
        status, sentence = found
        assert status == 421
        assert "127.0.0.1:3333, localhost:3333, [::1]:3333" in sentence
        assert b"evil" not in sentence.encode()

    def test_a_missing_host_and_two_hosts_are_refused(self) -> None:
        missing, two = refusal(), refusal((b"host", HERE), (b"host", HERE))
        assert missing is not None
        assert "is missing" in missing[1]
        assert two is not None
        assert (missing[0], two[0]) == (421, 421)

    def test_a_server_on_another_loopback_address_answers_to_that_too(self) -> None:
        assert refusal((b"host", b"127.0.0.2:3333"), host="127.0.0.2") is None
        assert refusal((b"host", b"[::1]:3333"), host="::1") is None

    def test_the_default_port_need_not_be_named(self) -> None:
        assert Admission(80).refuse([(b"host", b"localhost")]) is None


class TestTheOriginHeader:
    @pytest.mark.parametrize("origin", [b"http://127.0.0.1:3333", b"HTTP://Localhost:3333", b"http://[::1]:3333"])
    def test_the_server_itself_is_no_foreign_site(self, origin: bytes) -> None:
        assert refusal((b"host", HERE), (b"origin", origin)) is None

    @pytest.mark.parametrize(
        "origin",
        [
            *(b"null", b"", b"http://evil.example", b"https://127.0.0.1:3333", b"http://localhost:3000"),
            *(b"http://localhost:3333.evil.example", b"http://localhost.evil.example:3333", b"file://", b"*"),
            *(b"chrome-extension://abcdefgh", b"http://127.0.0.1.nip.io:3333", b"localhost:3333"),
        ],
    )
    def test_any_other_site_is_forbidden(self, origin: bytes) -> None:
        found = refusal((b"host", HERE), (b"origin", origin))
        assert found is not None
        assert found == (403, "the header Origin names another site: web pages may not call this server")

    def test_one_foreign_origin_of_two_is_enough(self) -> None:
        own, foreign = (b"origin", b"http://localhost:3333"), (b"origin", b"http://evil.example")
        assert [(refusal((b"host", HERE), *pair) or (0,))[0] for pair in ((own, foreign), (foreign, own))] == [403, 403]


class TestTheToken:
    @pytest.mark.parametrize(
        "sent",
        [
            (),
            ((b"authorization", b"Bearer"),),
            ((b"authorization", b"Bearer another-token-as-long-as"),),
            ((b"authorization", TOKEN.encode()),),
            ((b"authorization", b"Basic " + TOKEN.encode()),),
            ((b"authorization", b"Bearer " + TOKEN.encode() + b"x"),),
            ((b"authorization", b"Bearer " + TOKEN.encode()),) * 2,
            ((b"authorization", b"Bearer \xff\xfe"),),
            ((b"cookie", b"token=" + TOKEN.encode()),),
        ],
    )
    def test_only_the_exact_token_lets_a_caller_in(self, sent: tuple[tuple[bytes, bytes], ...]) -> None:
        found = refusal((b"host", HERE), *sent, token=TOKEN)
        assert found is not None
        assert found[0] == 401
        assert TOKEN not in found[1]

    def test_the_token_lets_a_caller_in_but_no_foreign_host_or_origin(self) -> None:
        token = (b"authorization", f"Bearer {TOKEN}".encode())
        assert refusal((b"host", HERE), token, token=TOKEN) is None
        assert refusal((b"host", HERE), (b"authorization", f"bearer {TOKEN}".encode()), token=TOKEN) is None
        assert refusal((b"host", b"evil.example"), token, token=TOKEN) is not None
        assert refusal((b"host", HERE), token, (b"origin", b"null"), token=TOKEN) is not None

    def test_a_server_without_a_token_does_not_care_what_callers_send(self) -> None:
        assert refusal((b"host", HERE), (b"authorization", b"Bearer whatever")) is None

    @pytest.mark.parametrize(
        "token", ["", "short", "fifteen-letters", "spaces are no token", "ünïcode-ünïcode-ünïcode"]
    )
    def test_a_token_that_could_be_guessed_or_not_be_sent_is_refused(self, token: str) -> None:
        with pytest.raises(ValueError, match="at least 16 characters"):
            Admission(PORT, token=token)


class TestTheAddress:
    @pytest.mark.parametrize(
        "host",
        [
            *("0.0.0.0", "::", "192.0.2.1", "10.0.0.5", "localhost.evil.example", "example.org", "", "127.1", "*"),
            *("::ffff:127.0.0.1", "::ffff:192.0.2.1", "::1%lo", "127.0.0.1:80", "2130706433"),
        ],
    )
    def test_an_address_that_others_could_reach_is_refused_with_the_reason(self, host: str) -> None:
        with pytest.raises(
            CannotListen, match=r"is not allowed: whoever reaches this server uses .* 127\.0\.0\.1 or ::1"
        ):
            loopback_socket(host)

    @pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST"])
    def test_a_free_port_of_loopback_is_taken(self, host: str) -> None:
        with loopback_socket(host) as listener:
            port = listener.getsockname()[1]
            assert listener.getsockname()[0] == "127.0.0.1"
            assert url_of(listener) == f"http://127.0.0.1:{port}/mcp"

    def test_a_port_in_use_is_one_sentence(self) -> None:
        with loopback_socket() as listener:
            port = listener.getsockname()[1]
            with pytest.raises(CannotListen, match=rf"port {port} of 127\.0\.0\.1 is in use; name another one, or 0"):
                loopback_socket(port=port)

    @pytest.mark.parametrize("port", [-1, 65536, 10**9])
    def test_a_number_that_is_no_port_is_one_sentence(self, port: int) -> None:
        with pytest.raises(CannotListen, match="a port is a number from 0 to 65535"):
            loopback_socket(port=port)

    async def test_answers_are_not_held_back_by_nagles_algorithm(self) -> None:
        """Otherwise each answer of more than one packet waits for an acknowledgement that is delayed by 40 ms."""
        delays: asyncio.Queue[int] = asyncio.Queue()

        async def note(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            sock = writer.get_extra_info("socket")
            await delays.put(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        listener = loopback_socket()
        async with await asyncio.start_server(note, sock=listener) as server:
            _, writer = await asyncio.open_connection(*listener.getsockname())
            assert await delays.get() == 1
            writer.close()
            server.close()
