"""`mcp-ops`, as a user starts it."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from endpoint import endpoint, says
from mcp import Client, StdioServerParameters
from opsproject import HOSTILE, denied, line, needy, read, script, wrong
from traces import DENIED_RUN, write_run

from mcp_ops.cli import main
from mcp_ops.cli.provider import choose_provider
from mcp_ops.trace.events import RunFinish, RunStart, ToolResult
from mcp_ops.trace.reader import Trace, read_trace

COMMANDS = ("serve", "run", "report", "demo", "evidence", "schema", "lint", "guards")
KEY = "sk-or-v1-0123456789abcdef"
PROGRAMS = {"ls", "cat", "head", "tail", "wc", "grep", "find", "du", "stat", "sort", "uniq", "date"}
EVENTS = "run_start|llm_request|llm_response|tool_call|tool_result|guard_denied|run_finish"


@pytest.fixture(autouse=True)
def away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command runs in an empty folder, without settings of the machine."""
    monkeypatch.chdir(tmp_path)
    for name in ("MCP_OPS_MODE", "MCP_OPS_MODEL", "MCP_OPS_BASE_URL", "MCP_OPS_API_KEY", "OPENROUTER_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name in ("OPS_DEMO_STATE", "OPS_K8S_RUN"):
        monkeypatch.setenv(name, str(tmp_path / "no-demo-cluster"))


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    (folder / "notes.md").write_text("The cache is full.\n")
    (folder / "staging.env").write_text("DB_PASSWORD=hunter2-Hunter2-0001\n")
    return folder


def write_script(*turns: Any, path: Path = Path("script.json")) -> str:
    path.write_text(json.dumps(script(*turns)))
    return str(path)


def start(*args: str, env: Mapping[str, str] | None = None, **more: Any) -> "subprocess.Popen[str]":
    """Start the installed console script."""
    program = Path(sys.executable).with_name("mcp-ops")
    return subprocess.Popen(
        [str(program), *args],
        stdout=-1,
        stderr=-1,
        text=True,
        encoding="utf-8",
        env={**os.environ, **(env or {})},
        **more,
    )


def only_run(runs: str = "runs") -> tuple[Trace, str]:
    """Return the one run that was made, read back and as it is written."""
    (folder,) = Path(runs).iterdir()
    return read_trace(folder), (folder / "trace.jsonl").read_text(encoding="utf-8")


def assert_one_sentence(stderr: str) -> None:
    assert stderr.count("\n") == 1
    assert stderr.startswith("mcp-ops: ")
    assert "Traceback" not in stderr


class TestTheCommandLine:
    def test_help_names_every_command(self, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit) as ended:
            main(["--help"])
        assert ended.value.code == 0
        out = capsys.readouterr().out
        assert [name for name in COMMANDS if not re.search(rf"^    {name}\b", out, re.MULTILINE)] == []

    @pytest.mark.parametrize(
        "argv",
        [
            [],
            ["bogus"],
            ["serve"],
            ["serve", "github", "--workspace", "."],
            ["serve", "ops", "--workspace", ""],
            ["run", "task"],
            ["run", "task", "--workspace", ".", "--max-calls", "0"],
            ["run", "task", "--workspace", ".", "--max-calls", "²"],
            ["report"],
            ["evidence"],
            ["evidence", "--out", "x"],
            ["lint"],
            ["guards", "--json", "--markdown"],
            ["schema", "extra\n::error::x"],
        ],
    )
    def test_a_wrong_command_line_is_one_sentence_and_exit_2(
        self, argv: list[str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        with pytest.raises(SystemExit) as ended:
            main(argv)
        assert ended.value.code == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert_one_sentence(captured.err)
        assert "--help" in captured.err

    @pytest.mark.parametrize("command", COMMANDS)
    def test_the_help_of_a_command_explains_every_argument(
        self, command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("COLUMNS", "400")
        with pytest.raises(SystemExit):
            main([command, "--help"])
        # A long name has its explanation on the next line.
        joined = re.sub(r"\n {6,}", "   ", capsys.readouterr().out)
        arguments = re.findall(r"^  (\S.*)$", joined, re.MULTILINE)
        assert arguments
        assert [argument for argument in arguments if not re.search(r"\S  +\S", argument)] == []

    def test_help_imports_neither_mcp_nor_langgraph_nor_pydantic(self) -> None:
        code = (
            "import sys\nfrom mcp_ops.cli import main\n"
            "try:\n    main(['run', '--help'])\nexcept SystemExit:\n    pass\n"
            "print([name for name in ('mcp', 'langgraph', 'pydantic', 'jinja2', 'httpx') if name in sys.modules])"
        )
        ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert ran.stdout.splitlines()[-1] == "[]"

    def test_the_package_can_be_run_where_the_script_is_not_on_the_path(self) -> None:
        ran = subprocess.run([sys.executable, "-m", "mcp_ops.cli", "--version"], capture_output=True, text=True)
        assert re.fullmatch(r"mcp-ops \d+\.\d+\.\d+\n", ran.stdout)

    def test_output_into_a_closed_pipe_ends_quietly(self) -> None:
        started = start("schema")
        assert started.stdout is not None
        assert started.stderr is not None
        started.stdout.close()
        assert started.stderr.read() == ""
        assert started.wait() == 141
        started.stderr.close()


class TestSchemaAndLint:
    @pytest.mark.covers("H15")
    def test_the_schema_is_json_schema_with_a_description_on_every_key(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["schema"]) == 0
        schema = json.loads(capsys.readouterr().out)
        assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
        assert {"id", "task", "expect", "mock"} <= set(schema["properties"])
        assert [name for name, part in schema["properties"].items() if not part.get("description")] == []

    @pytest.mark.covers("H15")
    def test_good_files_pass(self, capsys: pytest.CaptureFixture[str]) -> None:
        Path("a.jsonl").write_text(f"// a comment\n{json.dumps(line('one'))}\n\n{json.dumps(line('two'))}\n")
        Path("b.jsonl").write_text(json.dumps(line("one")))
        assert main(["lint", "a.jsonl", "b.jsonl"]) == 0
        assert capsys.readouterr() == ("2 files with 3 scenarios: no problem found\n", "")

    @pytest.mark.covers("H15")
    def test_every_bad_line_is_named_with_file_line_and_column(self, capsys: pytest.CaptureFixture[str]) -> None:
        misspelt = json.dumps(line("two")).replace('"task"', '"taks"')
        Path("a.jsonl").write_text(f"{json.dumps(line('one'))}\n{misspelt}\n\nnot json\n{json.dumps(line('one'))}\n")
        assert main(["lint", "a.jsonl"]) == 1
        out = capsys.readouterr().out.splitlines()
        assert [row.split(":")[:2] for row in out] == [["a.jsonl", "2"], ["a.jsonl", "4"], ["a.jsonl", "5"]]
        assert all(re.fullmatch(r"a\.jsonl:\d+:\d+: \S.*", row) for row in out)
        assert "taks" in out[0]
        assert "task" in out[0].replace("taks", "")
        assert out[2].startswith("a.jsonl:5:8: ")

    def test_a_file_that_is_not_there_is_exit_2(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["lint", "nowhere.jsonl"]) == 2
        assert capsys.readouterr() == ("", "mcp-ops: nowhere.jsonl cannot be read: no such file or directory\n")

    @pytest.mark.covers("A26")
    @pytest.mark.parametrize("name", ["::error::x.jsonl", "##[error]x.jsonl", " ::error::x.jsonl", "\x1b[31mx.jsonl"])
    def test_no_line_begins_with_what_a_ci_runner_obeys(self, name: str, capsys: pytest.CaptureFixture[str]) -> None:
        Path(name).write_text('{"\\u001b]0;x\\u0007\\n::error::y": 1}\n')
        assert main(["lint", name]) == 1
        out = capsys.readouterr().out
        assert out.count("\n") == 1
        assert not out.lstrip().startswith(("::", "##"))
        assert "\x1b" not in out


class TestReport:
    @pytest.mark.covers("A21")
    def test_one_page_of_several_runs_by_folder_or_by_file(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        first, second = write_run(tmp_path / "runs"), write_run(tmp_path / "runs", DENIED_RUN)
        assert main(["report", str(first), str(second.parent), "-o", "page.html", "--title", "Two <b>runs</b>"]) == 0
        page = Path("page.html").read_text(encoding="utf-8")
        assert "Two &lt;b&gt;runs&lt;/b&gt;" in page
        assert page.count("<article") == 2
        assert capsys.readouterr() == ("", "mcp-ops: wrote page.html (2 runs)\n")

    def test_the_page_is_trace_html_by_default(self, tmp_path: Path) -> None:
        assert main(["report", str(write_run(tmp_path / "runs"))]) == 0
        assert Path("trace.html").exists()

    def test_a_run_that_did_not_finish_is_shown_and_said(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = write_run(tmp_path / "runs")
        path.write_bytes(path.read_bytes()[:700])
        assert main(["report", str(path)]) == 0
        err = capsys.readouterr().err
        assert f"{path}: the run did not finish; its last line is cut off and was left out\n" in err
        assert "Incomplete" in Path("trace.html").read_text(encoding="utf-8")

    def test_a_damaged_trace_is_shown_and_is_exit_1(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        path = write_run(tmp_path / "runs")
        path.write_bytes(b"junk\n" + path.read_bytes())
        assert main(["report", str(path)]) == 1
        assert "line 1: not an event" in capsys.readouterr().err
        assert Path("trace.html").exists()

    @pytest.mark.parametrize(
        ("argv", "sentence"),
        [
            (["nowhere"], "nowhere is no run: no such file or directory; name a run's folder or its trace.jsonl"),
            (["."], ". is no run: no such file or directory; name a run's folder or its trace.jsonl"),
        ],
    )
    def test_what_is_no_run_is_exit_2(self, argv: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["report", *argv]) == 2
        assert capsys.readouterr().err == f"mcp-ops: {sentence}\n"
        assert not Path("trace.html").exists()

    def test_a_page_that_cannot_be_written_is_exit_2(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["report", str(write_run(tmp_path / "runs")), "-o", "nowhere/page.html"]) == 2
        assert_one_sentence(capsys.readouterr().err)


class TestGuards:
    def test_every_rule_is_listed_with_state_and_meaning(self, capsys: pytest.CaptureFixture[str]) -> None:
        from mcp_ops.servers.ops import RULES

        assert main(["guards", "--json"]) == 0
        tables = json.loads(capsys.readouterr().out)
        listed = {rule["rule"]: rule for rule in tables["rules"]}
        assert {rule.name for rule in RULES} <= set(listed)
        assert len(listed) == len(tables["rules"])
        assert all(rule["meaning"].endswith(".") for rule in listed.values())
        assert listed["path.secret"]["state"] == "denied"
        assert listed["cluster.unavailable"]["state"] == "unavailable"
        assert listed["time.limit"]["state"] == "failed"

    def test_each_rule_is_listed_with_the_servers_that_answer_with_it(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["guards", "--json"]) == 0
        servers = {rule["rule"]: rule["servers"] for rule in json.loads(capsys.readouterr().out)["rules"]}
        assert servers["args.invalid"] == ["ops", "github"]
        assert servers["path.secret"] == ["ops"]
        assert servers["github.watchlist"] == ["github"]
        assert servers["budget.spent"] == ["harness"]

    def test_secret_names_programs_and_walls_are_listed(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["guards", "--json"]) == 0
        tables = json.loads(capsys.readouterr().out)
        assert {"pattern": "*.pem", "but_not": []} in tables["secret_names"]
        programs = {program["program"]: program for program in tables["programs"]}
        assert set(programs) == PROGRAMS
        assert any("--output" in option for option in programs["sort"]["refused"])
        assert "-l" in programs["ls"]["allowed"]
        assert tables["second_wall"]
        assert tables["children_network"] in ("isolated", "unchecked")

    def test_the_text_and_the_markdown_hold_the_same_rules(self, capsys: pytest.CaptureFixture[str]) -> None:
        main(["guards", "--json"])
        names = [rule["rule"] for rule in json.loads(capsys.readouterr().out)["rules"]]
        assert main(["guards"]) == 0
        text = capsys.readouterr().out
        assert [name for name in names if f"\n  {name} " not in text] == []
        assert max(map(len, text.splitlines())) <= 120
        assert main(["guards", "--markdown"]) == 0
        markdown = capsys.readouterr().out
        assert [name for name in names if f"\n| `{name}` | " not in markdown] == []
        rows = [row for row in markdown.splitlines() if row.startswith("|")]
        assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} <= {3, 5, 6}


class TestServe:
    @pytest.mark.covers("A1")
    @pytest.mark.parametrize("mode", ["auto", "legacy"])
    async def test_a_client_lists_and_calls_tools_over_stdio(self, workspace: Path, mode: str) -> None:
        program = Path(sys.executable).with_name("mcp-ops")
        server = StdioServerParameters(command=str(program), args=["serve", "ops", "--workspace", str(workspace)])
        async with Client(server, mode=mode) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            executed = await client.call_tool("read_file", {"path": "notes.md"})
            refused = await client.call_tool("read_file", {"path": "staging.env"})
        assert "read_file" in names
        assert "The cache is full." in executed.content[0].text
        assert refused.structured_content["rule"] == "path.secret"

    @pytest.mark.covers("A1")
    def test_standard_output_carries_messages_only_and_the_server_ends_with_its_input(self, workspace: Path) -> None:
        initialize = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        messages = [
            {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize},
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {
                "jsonrpc": "2.0",
                "id": 2,
                "method": "tools/call",
                "params": {"name": "run_shell", "arguments": {"command": "ls"}},
            },
            {
                "jsonrpc": "2.0",
                "id": 3,
                "method": "tools/call",
                "params": {"name": "run_shell", "arguments": {"command": "rm x"}},
            },
        ]
        started = start("serve", "ops", "--workspace", str(workspace), stdin=subprocess.PIPE)
        assert started.stdin is not None
        assert started.stdout is not None
        answers = []
        for message in messages:
            started.stdin.write(json.dumps(message) + "\n")
            started.stdin.flush()
            if "id" in message:
                answers.append(json.loads(started.stdout.readline()))
        rest, err = started.communicate()
        assert [answer["id"] for answer in answers] == [1, 2, 3]
        assert "notes.md" in answers[1]["result"]["content"][0]["text"]
        assert answers[2]["result"]["structuredContent"]["state"] == "denied"
        assert (started.returncode, rest, err) == (0, "", "")

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_a_signal_ends_the_server_at_once_though_its_input_stays_open(
        self, workspace: Path, number: signal.Signals
    ) -> None:
        started = start("serve", "ops", "--workspace", str(workspace), stdin=subprocess.PIPE)
        assert started.stdin is not None
        assert started.stdout is not None
        started.stdin.write('{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
        started.stdin.flush()
        started.stdout.readline()
        started.send_signal(number)
        assert started.wait(timeout=30) == 128 + number
        _, err = started.communicate()
        assert "Traceback" not in err

    @pytest.mark.parametrize(
        ("argv", "words"),
        [
            (["--workspace", "nowhere"], "nowhere"),
            (["--workspace", "file.txt"], "file.txt"),
            (["--workspace", ".", "--kube-context", "k3d"], "kubeconfig"),
        ],
    )
    def test_a_workspace_that_is_none_is_one_sentence_and_exit_2(
        self, argv: list[str], words: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        Path("file.txt").touch()
        assert main(["serve", "ops", *argv]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert_one_sentence(captured.err)
        assert words in captured.err


class TestRun:
    @pytest.mark.covers("A20")
    def test_the_trace_is_written_and_echoed_and_the_answer_is_on_standard_output(
        self, workspace: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        file = write_script(read("notes.md"), "They say: ${last.text /cache is full/}")
        assert main(["run", "What do the notes say?", "--workspace", str(workspace), "--script", file]) == 0
        captured = capsys.readouterr()
        assert captured.out == "| They say: cache is full\n"
        (folder,) = Path("runs").iterdir()
        trace = read_trace(folder)
        names = [event.event for event in trace.events]
        expected = "run_start llm_request llm_response tool_call tool_result llm_request llm_response run_finish"
        assert names == expected.split()
        assert [row.split(" ")[0] for row in captured.err.splitlines()[:-1]] == names
        assert captured.err.splitlines()[-1] == f"mcp-ops: the trace is {folder / 'trace.jsonl'}"
        assert isinstance(trace.start, RunStart)
        assert (trace.start.mode, trace.start.model, trace.start.cluster) == ("mock", "mock", "none")
        assert "read_file" in trace.start.tools
        finish = trace.finish
        assert isinstance(finish, RunFinish)
        assert (finish.finish, finish.calls, finish.turns) == ("answer", 1, 2)

    @pytest.mark.covers("A19")
    async def test_live_mode_asks_the_endpoint_that_the_environment_names(
        self, workspace: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        turns = [json.dumps(turn) for turn in script(read("notes.md"), f"It is full. {KEY}")]
        async with endpoint(*map(says, turns)) as model:
            monkeypatch.setenv("MCP_OPS_MODE", "live")
            monkeypatch.setenv("MCP_OPS_BASE_URL", model.url)
            monkeypatch.setenv("MCP_OPS_MODEL", "some/model")
            monkeypatch.setenv("MCP_OPS_API_KEY", KEY)
            status = await asyncio.to_thread(main, ["run", "What do the notes say?", "--workspace", str(workspace)])
        assert status == 0
        captured = capsys.readouterr()
        assert captured.out == "| It is full. <redacted:MCP_OPS_API_KEY>\n"
        assert [request.body["model"] for request in model.requests] == ["some/model"] * 2
        assert model.requests[0].headers["authorization"] == f"Bearer {KEY}"
        trace, written = only_run()
        assert trace.start is not None
        assert (trace.start.mode, trace.start.model) == ("live", "some/model")
        assert KEY not in captured.err + written

    def test_json_gives_one_object(self, workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
        argv = [
            "run",
            "x",
            "--workspace",
            str(workspace),
            "--script",
            write_script("All well."),
            "--json",
            "--runs",
            "r",
        ]
        assert main(argv) == 0
        told = json.loads(capsys.readouterr().out)
        assert told["answer"] == "All well."
        assert told["finish"] == "answer"
        assert Path(told["trace"]).parent.name == told["run_id"]
        assert Path(told["trace"]).is_relative_to("r")

    def test_a_denial_does_not_end_the_run(self, workspace: Path) -> None:
        file = write_script({"tool": "run_shell", "args": {"command": "rm -rf ."}}, "No: ${denied.reason}")
        assert main(["run", "Clean up.", "--workspace", str(workspace), "--script", file]) == 0
        assert "guard_denied" in [event.event for event in only_run()[0].events]
        assert (workspace / "notes.md").exists()

    def test_without_a_cluster_its_tools_answer_unavailable_and_the_run_goes_on(self, workspace: Path) -> None:
        file = write_script({"tool": "kubectl_get", "args": {"resource": "pods"}}, "No cluster: ${last.text}")
        assert main(["run", "Pods?", "--workspace", str(workspace), "--script", file]) == 0
        (result,) = [each.payload for each in only_run()[0].events if isinstance(each.payload, ToolResult)]
        assert (result.state, result.rule) == ("unavailable", "cluster.unavailable")

    @pytest.mark.covers("A24")
    def test_a_cluster_that_does_not_answer_is_named_in_the_trace_as_not_reached(self, workspace: Path) -> None:
        file = write_script("done")
        argv = ["run", "x", "--workspace", str(workspace), "--script", file, "--kubeconfig", "nowhere.yaml"]
        assert main(argv) == 0
        start = only_run()[0].start
        assert start is not None
        assert start.cluster.startswith("nowhere.yaml (not reached: ")

    @pytest.mark.covers("A17")
    def test_a_run_that_spends_its_calls_is_exit_1(self, workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
        file = write_script(read("notes.md"), read("notes.md"), "never asked")
        argv = ["run", "x", "--workspace", str(workspace), "--script", file, "--max-calls", "2"]
        assert main(argv) == 1
        captured = capsys.readouterr()
        assert captured.out == ""
        assert "the calls were spent" in captured.err

    @pytest.mark.parametrize(
        ("turns", "words"),
        [
            ((read("notes.md"),), "end the script with a finish"),
            (("done", "again"), "entries left after the answer: 1"),
        ],
    )
    def test_a_script_that_does_not_fit_is_exit_1_and_stands_in_the_trace(
        self, workspace: Path, turns: tuple[Any, ...], words: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["run", "x", "--workspace", str(workspace), "--script", write_script(*turns)]) == 1
        assert words in capsys.readouterr().err
        finish = only_run()[0].finish
        assert finish is not None
        assert finish.finish == "error"
        assert words in (finish.error or "")

    @pytest.mark.covers("A26")
    def test_hostile_text_begins_no_line_and_stays_text(
        self, workspace: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        Path("script.json").write_text(json.dumps(script({"tool": HOSTILE, "args": {HOSTILE: HOSTILE}}, HOSTILE)))
        assert main(["run", f"x{HOSTILE}", "--workspace", str(workspace), "--script", "script.json"]) == 0
        captured = capsys.readouterr()
        for row in captured.out.splitlines():
            assert row.startswith("| ")
        for row in captured.err.splitlines():
            assert re.fullmatch(rf"({EVENTS}|mcp-ops:) .*", row)
        everything = captured.out + captured.err
        assert "##" not in everything
        assert re.fullmatch(r"[^\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]*", everything)

    @pytest.mark.covers("A20")
    def test_secrets_of_the_workspace_and_the_environment_are_redacted_everywhere(
        self, workspace: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """trace-html-017."""
        monkeypatch.setenv("DEPLOY_TOKEN", "tok-Abcdef-123456")
        said = "hunter2-Hunter2-0001 and tok-Abcdef-123456"
        file = write_script({"tool": "read_file", "args": {"path": said}}, f"They are {said}.")
        assert main(["run", f"Is it {said}?", "--workspace", str(workspace), "--script", file]) == 0
        captured = capsys.readouterr()
        _, written = only_run()
        for text in (captured.out, captured.err, written):
            assert "hunter2-Hunter2" not in text
            assert "tok-Abcdef" not in text
            assert "<redacted:canary-1>" in text
            assert "<redacted:DEPLOY_TOKEN>" in text

    @pytest.mark.parametrize(
        ("env", "argv", "sentence"),
        [
            (
                {},
                [],
                'mock mode needs --script FILE, a JSON list of replies such as [{"finish": "done"}]',
            ),
            ({"MCP_OPS_MODE": "real"}, [], "MCP_OPS_MODE is 'real'; write mock or live"),
            ({"MCP_OPS_MODE": "live"}, [], "live mode needs OPENROUTER_API_KEY, or MCP_OPS_BASE_URL"),
            (
                {"MCP_OPS_MODE": "live", "MCP_OPS_BASE_URL": "https://openrouter.ai/api/v1/", "MCP_OPS_API_KEY": "x"},
                *([], "live mode needs OPENROUTER_API_KEY"),
            ),
            ({"MCP_OPS_MODE": "live"}, ["--script", "s.json"], "--script is for mock mode"),
            ({"MCP_OPS_MODE": "live", "MCP_OPS_BASE_URL": "nonsense"}, [], "the base URL is no address"),
            ({"MCP_OPS_MODE": "live", "OPENROUTER_API_KEY": "a b"}, [], "the API key holds a space"),
            ({}, ["--script", "nowhere.json"], "nowhere.json cannot be read: no such file or directory"),
            ({}, ["--script", "bad.json"], "bad.json is no JSON"),
            ({}, ["--script", "deep.json"], "deep.json is no"),
            ({}, ["--script", "wrong.json"], "wrong.json is no script: "),
            ({}, ["--script", "s.json", "--workspace", "nowhere"], "nowhere"),
            ({}, ["--script", "s.json", "--kube-context", "k3d"], "kubeconfig"),
            ({}, ["--script", "s.json", "--runs", "s.json"], "no trace can be written to s.json"),
        ],
    )
    def test_what_does_not_fit_together_is_one_sentence_and_exit_2(
        self,
        workspace: Path,
        env: dict[str, str],
        argv: list[str],
        sentence: str,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        write_script("done", path=Path("s.json"))
        Path("bad.json").write_text('[{"finish": ')
        Path("deep.json").write_text("[" * 100_000)
        Path("wrong.json").write_text('[{"finsh": "done"}]')
        for name, value in env.items():
            monkeypatch.setenv(name, value)
        assert main(["run", "x", "--workspace", str(workspace), *argv]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert_one_sentence(captured.err)
        assert sentence in captured.err
        assert not Path("runs").exists()

    @pytest.mark.covers("A19")
    @pytest.mark.parametrize(
        ("base_url", "key"),
        [(None, "provider"), ("http://127.0.0.1:1/v1", "other"), ("https://example.com/v1", "other")],
    )
    def test_the_provider_s_key_goes_to_the_provider_only(self, base_url: str | None, key: str) -> None:
        environ = {"MCP_OPS_MODE": "live", "OPENROUTER_API_KEY": "provider", "MCP_OPS_API_KEY": "other"}
        made = choose_provider(None, environ | ({"MCP_OPS_BASE_URL": base_url} if base_url else {}))
        assert made.api_key == key

    @pytest.mark.covers("H44")
    def test_ctrl_c_ends_the_run_without_a_traceback_and_keeps_the_trace(self, workspace: Path) -> None:
        """The model's endpoint takes the connection and never answers."""
        import socket

        with socket.create_server(("127.0.0.1", 0)) as listener:
            env = {"MCP_OPS_MODE": "live", "MCP_OPS_BASE_URL": f"http://127.0.0.1:{listener.getsockname()[1]}/v1"}
            started = start("run", "x", "--workspace", str(workspace), env=env)
            connection, _ = listener.accept()
            with connection:
                started.send_signal(signal.SIGINT)
                out, err = started.communicate(timeout=60)
        assert started.returncode == 130
        assert out == ""
        assert "Traceback" not in err
        assert err.splitlines()[-1] == "mcp-ops: interrupted"
        finish = only_run()[0].finish
        assert finish is not None
        assert finish.error == "the run was interrupted"


class TestDemo:
    @pytest.fixture
    def scenarios(self) -> Callable[..., Path]:
        def write(*lines: Mapping[str, Any]) -> Path:
            path = Path("scenarios/scenarios.jsonl")
            path.parent.mkdir(exist_ok=True)
            path.write_text("".join(json.dumps(each) + "\n" for each in lines))
            return path

        return write

    @pytest.mark.covers("A22")
    def test_the_scenarios_with_the_tag_demo_make_one_page_of_one_run_each(
        self, scenarios: Callable[..., Path], capsys: pytest.CaptureFixture[str]
    ) -> None:
        scenarios(line("one", tags=["demo"]), line("other"), denied("two", tags=["demo", "guardrail"]))
        assert main(["demo"]) == 0
        page = Path("trace.html").read_text(encoding="utf-8")
        assert page.count("<article") == 2
        assert "shell.binary" in page
        assert len(list(Path("runs").iterdir())) == 2
        assert "guard_denied" in capsys.readouterr().err

    def test_scenarios_can_be_named(self, scenarios: Callable[..., Path]) -> None:
        scenarios(line("one", tags=["demo"]), line("other"), denied("two"))
        assert main(["demo", "--id", "other", "--id", "two", "-o", "named.html", "--runs", "traces"]) == 0
        assert Path("named.html").read_text(encoding="utf-8").count("<article") == 2
        assert len(list(Path("traces").iterdir())) == 2

    @pytest.mark.covers("A22", "A24")
    def test_what_needs_a_cluster_is_run_without_one_and_is_not_called_proven(
        self, scenarios: Callable[..., Path], capsys: pytest.CaptureFixture[str]
    ) -> None:
        pods = {"tool": "kubectl_get", "args": {"resource": "pods"}}
        scenarios(needy("health", mock=script(pods, "Pod: ${last.text /web-[a-z0-9]+/}"), tags=["demo"]))
        assert main(["demo"]) == 0
        finish = only_run()[0].finish
        assert finish is not None
        assert finish.finish == "answer"
        assert "cluster_unavailable" in (finish.answer or "")
        err = capsys.readouterr().err
        assert "health needs a cluster, which is not here" in err
        page = Path("trace.html").read_text(encoding="utf-8")
        assert "cluster_unavailable" in page
        assert "none was named" in page
        assert "(without a cluster: nothing is proven)" in page

    def test_a_scenario_that_does_not_come_out_as_expected_is_exit_1(
        self, scenarios: Callable[..., Path], capsys: pytest.CaptureFixture[str]
    ) -> None:
        scenarios(wrong("bad", tags=["demo"]))
        assert main(["demo"]) == 1
        assert re.search(
            r"^mcp-ops: scenarios/scenarios\.jsonl:1: .*kubectl_logs", capsys.readouterr().err, re.MULTILINE
        )
        assert Path("trace.html").exists()

    @pytest.mark.parametrize(
        ("lines", "argv", "status", "sentence"),
        [
            (
                None,
                [],
                2,
                "scenarios/scenarios.jsonl cannot be read: no such file or directory; name a file with --scenarios",
            ),
            ([line("one")], [], 2, "has no scenario with the tag demo; name some with --id"),
            ([line("one")], ["--id", "two"], 2, "has no scenario two"),
            ([line("one", tags=["demo"], taks="x")], [], 1, "scenarios/scenarios.jsonl:1:"),
        ],
    )
    def test_what_cannot_be_run_is_one_sentence(
        self,
        scenarios: Callable[..., Path],
        lines: list[dict[str, Any]] | None,
        argv: list[str],
        status: int,
        sentence: str,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        if lines is not None:
            scenarios(*lines)
        assert main(["demo", *argv]) == status
        err = capsys.readouterr().err
        assert_one_sentence(err)
        assert sentence in err
