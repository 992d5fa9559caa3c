"""What comes along with the agent: no heavy import, and nobody who listens."""

import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest


def python(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.covers("H30")
def test_importing_the_agent_and_the_models_imports_no_heavy_library() -> None:
    heavy = ["langgraph", "langchain_core", "langsmith", "httpx", "re2", "mcp"]
    code = f"import sys, mcp_ops.agent, mcp_ops.llm; print([name for name in {heavy} if name in sys.modules])"
    assert python(code).strip() == "[]"


ONE_RUN = """
import asyncio
from langchain_core.tracers.langchain import wait_for_all_tracers
from mcp_ops.agent import AgentInput, run_agent
from mcp_ops.llm import MockLLM

class NoTools:
    async def list_tools(self):
        return []

model = MockLLM([{"finish": "done"}], calls=list)
print(asyncio.run(run_agent(AgentInput("task", NoTools(), model, lambda event: None))).answer)
wait_for_all_tracers()
"""


@pytest.mark.covers("H2")
def test_a_stray_tracing_variable_sends_nothing_anywhere() -> None:
    hits: list[str] = []

    class Collector(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            hits.append(self.path)
            self.send_error(500)

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            """Say nothing on stderr."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Collector) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            said = python(
                ONE_RUN,
                LANGSMITH_TRACING="true",
                LANGSMITH_API_KEY="x",
                LANGSMITH_ENDPOINT=f"http://127.0.0.1:{server.server_port}",
            )
        finally:
            server.shutdown()
            thread.join()
    assert said.strip() == "done"
    assert hits == []
