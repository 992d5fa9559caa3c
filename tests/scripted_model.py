"""A model on loopback that speaks Anthropic's Messages API and replies what a test tells it to, one reply a request."""

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "sk-ant-test-5f1c0b7e93"


def says(text: str) -> dict[str, Any]:
    """Return a reply that is an answer."""
    return {"content": [{"type": "text", "text": text}], "stop_reason": "end_turn"}


def calls(*asked: tuple[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return a reply that asks for calls."""
    blocks = [
        {"type": "tool_use", "id": f"toolu_{number}", "name": tool, "input": dict(arguments)}
        for number, (tool, arguments) in enumerate(asked)
    ]
    return {"content": blocks, "stop_reason": "tool_use"}


@dataclass
class ScriptedModel:
    """What it was asked, and whether it replies now."""

    replies: Sequence[Mapping[str, Any]]
    url: str = ""
    requests: list[Any] = field(default_factory=list)
    asked: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    """Released at each request."""
    may_reply: threading.Event = field(default_factory=threading.Event)

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs to use it."""
        return {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": self.url}


@contextmanager
def scripted_model(*replies: Mapping[str, Any], held: bool = False) -> Iterator[ScriptedModel]:
    """Listen and give one reply a request, in order; a held one replies when it is told that it may."""
    model = ScriptedModel(replies)
    if not held:
        model.may_reply.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            number = len(model.requests)
            model.requests.append(body)
            model.asked.release()
            model.may_reply.wait()
            reply = {"type": "message", "role": "assistant", "model": body["model"], "usage": {}}
            data = json.dumps({**reply, **model.replies[number]}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    model.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield model
    finally:
        model.may_reply.set()
        server.shutdown()
        thread.join()
        server.server_close()
