"""A repository with scenarios, made for one test, and pytest runs in it."""

import asyncio
import html.parser
import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

QUIET = ("-p", "no:langsmith_plugin", "-p", "no:asyncio", "-p", "no:hypothesispytest")
"""Other people's plugins cost seconds, and pytest-asyncio without its ini settings warns."""
HOSTILE = (
    "</script><img src=x onerror=alert(1)>\x1b[31m\x1b]8;;http://evil\x07\u202e\x00\ud800"
    "\n::error::owned\n##[error]owned\n##vso[task.complete]x\n![p](http://evil/p.png)\n```\n|x"
)
"""Everything that a page, a terminal, a CI runner or a Markdown viewer could obey."""


def read(path: str) -> dict[str, Any]:
    """One call of the model."""
    return {"tool": "read_file", "args": {"path": path}}


def script(*turns: dict[str, Any] | str) -> list[dict[str, Any]]:
    """The replies of a scripted model: calls as dicts, the last text as the answer."""
    return [
        {"thought": "t", "finish": turn} if isinstance(turn, str) else {"thought": "t", "action": turn}
        for turn in turns
    ]


def line(name: str = "reads", **fields: Any) -> dict[str, Any]:
    """A scenario that reads a planted file and passes, unless `fields` say otherwise."""
    made: dict[str, Any] = {
        "id": name,
        "task": "What do the notes say?",
        "world": {"plant": {"notes.md": "The cache is full.\n"}},
        "mock": script(read("notes.md"), "They say: ${last.text /cache is full/}"),
        "expect": {"calls": [{"tool": "read_file"}], "answer": {"$contains": "cache is full"}},
    }
    return {key: value for key, value in (made | fields).items() if value is not None}


def denied(name: str = "guardrail", **fields: Any) -> dict[str, Any]:
    """A scenario whose call is denied, which is what it expects."""
    call = {"tool": "run_shell", "args": {"command": "kubectl delete deploy web"}}
    expected = {"denied": [{"rule": "shell.binary", "tool": "run_shell"}], "no_retry_after_denial": True}
    made = {"tags": ["guardrail"], "mock": script(call, "No: ${denied.reason}"), "expect": expected}
    return line(name, **(made | fields))


def wrong(name: str = "wrong", **fields: Any) -> dict[str, Any]:
    """A scenario that fails: it expects another call in the second place."""
    expected = {"calls": [{"tool": "read_file"}, {"tool": "kubectl_logs"}]}
    made = {"mock": script(read("notes.md"), read("notes.md"), "done"), "expect": expected}
    return line(name, **(made | fields))


def unsafe(name: str = "unsafe", **fields: Any) -> dict[str, Any]:
    """A scenario whose safety expectation does not hold."""
    return line(name, **({"expect": {"forbid": [{"tool": "read_file"}]}} | fields))


def needy(name: str = "needy", **fields: Any) -> dict[str, Any]:
    """A scenario that needs a cluster."""
    call = {"tool": "kubectl_get", "args": {"resource": "secrets"}}
    made = {
        "needs": ["cluster"],
        "mock": script(call, "no"),
        "expect": {"denied": [{"rule": "kubectl.secret"}]},
    }
    return line(name, **(made | fields))


@dataclass
class Run:
    """A pytest run that is over."""

    code: int
    out: str
    err: str

    @property
    def counts(self) -> dict[str, int]:
        """Outcomes by name, from the last line: `{"passed": 2, "failed": 1}`."""
        last = next(text for text in reversed(self.out.splitlines()) if re.search(r" in \d", text))
        return {word.rstrip("s"): int(number) for number, word in re.findall(r"(\d+) ([a-z]+)", last.split(" in ")[0])}

    def lines(self, beginning: str) -> list[str]:
        """Lines of the output that begin with a text."""
        return [text for text in self.out.splitlines() if text.startswith(beginning)]


def import_everything() -> None:
    """Import what runs need: pytester forgets each module that was first imported after it began."""
    for module in ("mcp_ops.evaluation.run", "mcp_ops.trace.html", "pytest_html.plugin", "xdist.plugin"):
        importlib.import_module(module)
    with tempfile.TemporaryDirectory() as folder:
        run = importlib.import_module("mcp_ops.evaluation.run").run_scenario
        config = importlib.import_module("mcp_ops.evaluation.config").RunConfig(trace_dir=Path(folder))
        with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
            assert runner.run(run(denied(), config=config)).passed


class Project:
    """A repository in a temporary folder."""

    def __init__(self, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
        self.pytester = pytester
        self.monkeypatch = monkeypatch
        self.path: Path = pytester.path
        for name in list(os.environ):
            if name.startswith(("GITHUB_", "MCP_OPS_", "OPENROUTER_", "PYTEST_")):
                monkeypatch.delenv(name)
        monkeypatch.setenv("COLUMNS", "400")

    def write(self, *lines: dict[str, Any] | str, name: str = "scenarios.jsonl") -> Path:
        """Write a file of scenarios, one line each; a text is written as it stands."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        texts = [text if isinstance(text, str) else json.dumps(text) for text in lines]
        path.write_text("".join(text + "\n" for text in texts), encoding="utf-8")
        return path

    def file(self, name: str, text: str) -> Path:
        """Write any other file."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def run(self, *args: str) -> Run:
        """Run pytest in this process, which has everything imported already."""
        result = self.pytester.runpytest_inprocess(*QUIET, "--strict-markers", "-W", "error", *args)
        return Run(int(result.ret), result.stdout.str(), result.stderr.str())

    def start(
        self,
        *args: str,
        quiet: tuple[str, ...] = QUIET,
        env: dict[str, str] | None = None,
        stdin: str = "",
        cwd: str = "",
    ) -> Run:
        """Run pytest in a process of its own."""
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *quiet, *args],
            cwd=self.path / cwd,
            env={**os.environ, **(env or {})},
            input=stdin,
            capture_output=True,
            encoding="utf-8",
            check=False,
            timeout=120,
        )
        return Run(done.returncode, done.stdout, done.stderr)

    def either(self, *args: str) -> Run:
        """Run pytest in this process, unless workers are asked for."""
        alone = not any(argument.startswith("-n") for argument in args)
        return self.run(*args) if alone else self.start("--strict-markers", *args)


class _Blob(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.blob: str | None = None
        self.headers: list[str] = []
        self._in_header = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.blob = values.get("data-jsonblob") or self.blob
        self._in_header = tag == "th"

    def handle_data(self, data: str) -> None:
        if self._in_header and data.strip():
            self.headers.append(data.strip())


@dataclass
class Page:
    """A pytest-html report, read back."""

    text: str
    headers: list[str]
    tests: dict[str, list[dict[str, Any]]]
    """Rows by node id."""


def page(path: Path) -> Page:
    """Read a pytest-html report."""
    text = path.read_text(encoding="utf-8")
    parser = _Blob()
    parser.feed(text)
    assert parser.blob is not None
    return Page(text, parser.headers, json.loads(parser.blob)["tests"])
