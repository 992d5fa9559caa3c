"""Reading a reply of chat completions with native tool calls: pieces of text and of calls, as a stream or whole."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mcp_ops.llm.base import NativeCall, NativeReply
from mcp_ops.llm.calls import with_ids
from mcp_ops.llm.completion import content_text, first_choice
from mcp_ops.llm.failures import Quote, Unusable, error_inside, filtered, message_of, no_text, refused
from mcp_ops.llm.reading import amount, count, json_of, mapping, mappings, text
from mcp_ops.llm.sse import EventStream, ServerEvent
from mcp_ops.llm.strict_json import read_arguments
from mcp_ops.llm.tool_names import ToolNames

_DONE = "[DONE]"


@dataclass
class _Call:
    """One call, as far as it has come."""

    id: str = ""
    name: str = ""
    written: list[str] = field(default_factory=list)


class ChunkReader:
    """Puts a reply together."""

    def __init__(
        self, content_type: str, quote: Quote, names: ToolNames, progress: Callable[[str], object] | None = None
    ) -> None:
        self._events = EventStream() if content_type.strip().lower().startswith("text/event-stream") else None
        self._quote = quote
        self._names = names
        self._progress = progress
        self._body = bytearray()
        self._model: object = None
        self._usage: Mapping[str, Any] = {}
        self._finish: object = None
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._calls: list[_Call] = []
        self._at: dict[int, _Call] = {}
        self._done = False

    def feed(self, data: bytes) -> bool:
        """Take the next bytes; True when the reply is complete.

        Raises:
            Unusable: The stream holds an error, or no JSON.
        """
        if self._events is None:
            self._body += data
            return False
        for event in self._events.feed(data):
            self._take(event)
            if self._done:
                return True
        return False

    def end(self) -> NativeReply:
        """Return the reply.

        Raises:
            Unusable: The reply ended too early, or there is nothing in it.
        """
        if self._events is None:
            value = json_of(bytes(self._body))
            if not isinstance(value, dict):
                raise Unusable("server", "the endpoint answered with something that is not a JSON object", again=True)
            self._chunk(value, "message")
            if first_choice(value.get("choices")) is None:
                raise Unusable("empty", "the endpoint answered without any choice", again=True)
        elif not self._done:
            for event in self._events.end():
                self._take(event)
            # Some endpoints say why they finish, and then just close.
            if not self._done and self._finish is None:
                raise Unusable("server", "the stream ended before the reply did", again=True)
        if self._calls and self._finish is None:
            raise Unusable("server", "the reply asks for calls and does not say that it is complete", again=True)
        return self._reply()

    def _take(self, event: ServerEvent) -> None:
        if event.data.strip() == _DONE:
            self._done = True
            return
        value = json_of(event.data)
        if not isinstance(value, dict):
            raise Unusable("server", "the stream holds an event that is no JSON object", again=True)
        if event.name == "error":
            raise error_inside(message_of(value), self._quote)
        self._chunk(value, "delta")

    def _chunk(self, value: Mapping[str, Any], key: str) -> None:
        """Take one chunk of a stream, or a whole answer, whose choice holds the same fields under another key."""
        choice = first_choice(value.get("choices")) or {}
        if error := value.get("error") or choice.get("error"):
            raise error_inside(error, self._quote)
        self._model = value.get("model") or self._model
        self._usage = mapping(value.get("usage")) or self._usage
        self._finish = choice.get("finish_reason") or self._finish
        message = mapping(choice.get(key))
        if piece := content_text(message.get("content")):
            self._text.append(piece)
            if self._progress is not None:
                self._progress(piece)
        self._refusal.append(text(message.get("refusal")))
        for part in mappings(message.get("tool_calls")):
            self._add(part)

    def _add(self, part: Mapping[str, Any]) -> None:
        function = mapping(part.get("function"))
        named = bool(text(function.get("name")))
        call = self._call_of(count(part.get("index")), text(part.get("id")), named=named)
        name = text(function.get("name"))
        # Some endpoints say the whole name in each piece.
        call.name += name if name != call.name else ""
        arguments = function.get("arguments")
        if arguments is not None:
            call.written.append(arguments if isinstance(arguments, str) else json.dumps(arguments))

    def _call_of(self, index: int | None, identity: str, *, named: bool) -> _Call:
        """Return the call that a piece belongs to: by its index, else the last one.

        Another id begins another call, and so does a name in a piece without index.
        """
        last = self._calls[-1] if self._calls and not named else None
        call = last if index is None else self._at.get(index)
        if call is None or (identity and call.id and identity != call.id):
            call = _Call()
            self._calls.append(call)
        if index is not None:
            self._at[index] = call
        call.id = call.id or identity
        return call

    def _reply(self) -> NativeReply:
        finish = self._quote(self._finish) or None
        said, refusal = "".join(self._text), "".join(self._refusal)
        if finish == "content_filter":
            raise filtered()
        if refusal.strip():
            raise refused(self._quote(refusal))
        cut = finish == "length"
        if not said.strip() and not self._calls:
            raise no_text(cut, finish)
        return NativeReply(
            said,
            model=self._quote(self._model),
            finish_reason=finish,
            prompt_tokens=count(self._usage.get("prompt_tokens")),
            completion_tokens=count(self._usage.get("completion_tokens")),
            usd=amount(self._usage.get("cost")),
            calls=with_ids([self._call(call, cut and call is self._calls[-1]) for call in self._calls]),
            cut=cut,
        )

    def _call(self, call: _Call, may_be_cut: bool) -> NativeCall:
        written, name = "".join(call.written), self._names.meant(call.name)
        if may_be_cut and not written.strip():
            return NativeCall(call.id, name, None, "were cut off before their end; write shorter ones", written)
        arguments, wrong = read_arguments(written)
        return NativeCall(call.id, name, arguments, wrong, written if wrong else "")
