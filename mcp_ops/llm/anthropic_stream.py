"""Reading a reply of Anthropic's Messages API: blocks of text, reasoning and calls, as a stream or whole."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mcp_ops.llm.base import NativeCall, NativeReply
from mcp_ops.llm.calls import with_ids
from mcp_ops.llm.failures import Quote, Unusable, error_inside, message_of, no_text, refused
from mcp_ops.llm.reading import count, json_of, mapping, mappings, text
from mcp_ops.llm.sse import EventStream, ServerEvent
from mcp_ops.llm.strict_json import read_arguments
from mcp_ops.llm.tool_names import ToolNames

_CUT = ("max_tokens", "model_context_window_exceeded")
_REASONING = ("thinking", "redacted_thinking")
_PROMPT_COUNTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


@dataclass
class _Block:
    """One block of the reply, as far as it has come."""

    start: Mapping[str, Any]
    pieces: dict[str, list[str]] = field(default_factory=dict)
    """What was added to its fields, such as `text` or `partial_json`."""
    whole: bool = False

    @property
    def kind(self) -> str:
        return text(self.start.get("type"))

    def joined(self, name: str) -> str:
        """Return a field with everything that was added to it."""
        return text(self.start.get(name)) + "".join(self.pieces.get(name, ()))


class MessageReader:
    """Puts a message together."""

    def __init__(
        self, content_type: str, quote: Quote, names: ToolNames, progress: Callable[[str], object] | None = None
    ) -> None:
        self._events = EventStream() if content_type.strip().lower().startswith("text/event-stream") else None
        self._quote = quote
        self._names = names
        self._progress = progress
        self._body = bytearray()
        self._message: dict[str, Any] = {}
        self._usage: dict[str, Any] = {}
        self._blocks: dict[int, _Block] = {}
        self._stopped = False

    def feed(self, data: bytes) -> bool:
        """Take the next bytes; True when the message is complete.

        Raises:
            Unusable: The stream holds an error, or no JSON.
        """
        if self._events is None:
            self._body += data
            return False
        for event in self._events.feed(data):
            self._take(event)
            if self._stopped:
                return True
        return False

    def end(self) -> NativeReply:
        """Return the reply.

        Raises:
            Unusable: The message ended too early, or there is nothing in it.
        """
        if self._events is None:
            self._take_whole(json_of(bytes(self._body)))
        elif not self._stopped:
            for event in self._events.end():
                self._take(event)
        if not self._stopped:
            raise Unusable("server", "the stream ended before the message did", again=True)
        return self._reply()

    def _take(self, event: ServerEvent) -> None:
        value = json_of(event.data)
        if not isinstance(value, dict):
            raise Unusable("server", "the stream holds an event that is no JSON object", again=True)
        match value.get("type") or event.name:
            case "message_start":
                self._message.update(mapping(value.get("message")))
                self._usage.update(mapping(self._message.get("usage")))
            case "content_block_start":
                self._blocks[_index(value)] = _Block(mapping(value.get("content_block")))
            case "content_block_delta":
                self._add(_index(value), mapping(value.get("delta")))
            case "content_block_stop" if _index(value) in self._blocks:
                self._blocks[_index(value)].whole = True
            case "message_delta":
                self._message.update(_said(value.get("delta")))
                self._usage.update(_said(value.get("usage")))
            case "message_stop":
                self._stopped = True
            case "error":
                raise error_inside(message_of(value), self._quote)

    def _add(self, index: int, delta: Mapping[str, Any]) -> None:
        block = self._blocks.setdefault(index, _Block({"type": "text"}))
        for name, piece in delta.items():
            if name != "type" and isinstance(piece, str):
                block.pieces.setdefault(name, []).append(piece)
        if self._progress is not None and (piece := text(delta.get("text"))):
            self._progress(piece)

    def _take_whole(self, value: Any) -> None:
        """Take a message that came as one object, from an endpoint that does not stream."""
        if not isinstance(value, dict):
            raise Unusable("server", "the endpoint answered with something that is not a JSON object", again=True)
        if value.get("type") == "error" or value.get("error"):
            raise error_inside(message_of(value), self._quote)
        self._message = value
        self._usage = dict(mapping(value.get("usage")))
        self._blocks = {number: _Block(part, whole=True) for number, part in enumerate(mappings(value.get("content")))}
        self._stopped = True

    def _reply(self) -> NativeReply:
        finish = self._quote(self._message.get("stop_reason")) or None
        if finish == "refusal":
            raise refused(self._quote(mapping(self._message.get("stop_details")).get("explanation")))
        blocks = [self._blocks[index] for index in sorted(self._blocks)]
        said = "".join(block.joined("text") for block in blocks if block.kind == "text")
        asked = [block for block in blocks if block.kind == "tool_use"]
        cut = finish in _CUT
        # Arguments of which nothing came are none only where the reply went on to its end.
        calls = with_ids([self._call(block, may_be_cut=cut and block is asked[-1]) for block in asked])
        if not said.strip() and not calls:
            raise no_text(cut, finish)
        prompt = [number for name in _PROMPT_COUNTS if (number := count(self._usage.get(name))) is not None]
        return NativeReply(
            said,
            model=self._quote(self._message.get("model")),
            finish_reason=finish,
            prompt_tokens=sum(prompt) if prompt else None,
            completion_tokens=count(self._usage.get("output_tokens")),
            calls=calls,
            cut=cut,
            kept=_kept(blocks, calls),
        )

    def _call(self, block: _Block, *, may_be_cut: bool) -> NativeCall:
        name = self._names.meant(text(block.start.get("name")))
        written = "".join(block.pieces.get("partial_json", ()))
        given = block.start.get("input")
        identity = text(block.start.get("id"))
        if not block.whole or (may_be_cut and not written and not given):
            return NativeCall(identity, name, None, "were cut off before their end; write shorter ones", written)
        if not written and isinstance(given, dict):
            return NativeCall(identity, name, given)
        arguments, wrong = read_arguments(written)
        return NativeCall(identity, name, arguments, wrong, written if wrong else "")


def _kept(blocks: list[_Block], calls: tuple[NativeCall, ...]) -> tuple[Mapping[str, Any], ...]:
    """Return signed reasoning as it came, with marks where text and calls stand; nothing when there is none."""
    if not any(block.kind in _REASONING for block in blocks):
        return ()
    kept: list[Mapping[str, Any]] = []
    identities = iter(calls)
    for block in blocks:
        if block.kind in _REASONING:
            kept.append({**block.start, **{name: block.joined(name) for name in block.pieces}})
        elif block.kind == "tool_use":
            kept.append({"type": "tool_use", "id": next(identities).id})
        elif block.kind == "text":
            kept.append({"type": "text"})
    return tuple(kept)


def _said(value: object) -> dict[str, Any]:
    """Return what an update really says: null takes nothing back."""
    return {key: item for key, item in mapping(value).items() if item is not None}


def _index(value: Mapping[str, Any]) -> int:
    index = count(value.get("index"))
    return 0 if index is None else index
