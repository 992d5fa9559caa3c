"""Server-sent events: the same ones come out however the bytes are split."""

import pytest

from mcp_ops.llm.sse import EventStream, ServerEvent
from mcp_ops.llm.tool_names import ToolNames

pytestmark = pytest.mark.covers("D9")

STREAM = (
    "event: one\r\n: a comment\r\ndata: é\r\ndata: second line\r\n\r\n"
    "data:no space\n\nid: 4\nretry: 9\nunknown\ndata:  two spaces\rdata\r\revent: empty\n\ndata: last"
).encode()
EVENTS = [
    ServerEvent("one", "é\nsecond line"),
    ServerEvent("", "no space"),
    ServerEvent("", " two spaces\n"),
    ServerEvent("", "last"),
]


@pytest.mark.parametrize("size", [1, 2, 3, 7, len(STREAM)])
@pytest.mark.parametrize("begin", [b"", b"\xef\xbb\xbf"], ids=["plain", "bom"])
def test_any_way_to_split_a_stream_gives_the_same_events(size: int, begin: bytes) -> None:
    stream, data = EventStream(), begin + STREAM
    seen = [event for at in range(0, len(data), size) for event in stream.feed(data[at : at + size])]
    assert [*seen, *stream.end()] == EVENTS


def test_bytes_that_are_no_text_do_not_stop_a_stream() -> None:
    assert list(EventStream().feed(b"data: \xff\xfe\n\n")) == [ServerEvent("", "\ufffd\ufffd")]


def test_names_that_are_taken_stay_and_others_never_collide_with_them() -> None:
    made = ToolNames(["a.b"]).sent("a.b")
    names = ToolNames(["a.b", made, "a b", "", "a.b"])
    sent = [names.sent(name) for name in ("a.b", made, "a b", "")]
    assert sent[1] == made
    assert len(set(sent)) == 4
    assert [names.meant(name) for name in sent] == ["a.b", made, "a b", ""]
    assert names.meant("never sent") == "never sent"
