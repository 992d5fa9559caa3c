"""The command line of `mcp-ops`, without anything behind it."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, get_args

from mcp_ops import __version__
from mcp_ops.text import one_line
from mcp_ops.trace.detail import Detail

PAGE = Path("trace.html")
RUNS = Path("runs")
EVIDENCE = Path("evidence")
TOOL_CLASSES = ("read_only", "mutating", "destructive")
SCENARIOS = Path("scenarios/scenarios.jsonl")
HTTP_PORT = 3333


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"mcp-ops: {one_line(message, 400)}; see {self.prog} --help\n")


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of every subcommand."""
    parser = _Parser(prog="mcp-ops", description="Guarded ops tools for agents, and what their runs looked like.")
    parser.add_argument("--version", action="version", version=f"mcp-ops {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)
    _serve(commands)
    _run(commands)
    _agent(commands)
    _report(commands)
    _demo(commands)
    _evidence(commands)
    commands.add_parser("schema", help="print the JSON Schema of a scenario line")
    lint = commands.add_parser("lint", help="check scenario files without running them")
    lint.add_argument("files", nargs="+", type=Path, metavar="FILE", help="a file of scenario lines")
    guards = commands.add_parser("guards", help="list every guard rule, secret name and program that is allowed")
    _guards(guards)
    form = guards.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_const", const="json", dest="form", default="text", help="as JSON")
    form.add_argument("--markdown", action="store_const", const="markdown", dest="form", help="as in docs/guards.md")
    return parser


def _serve(commands: Any) -> None:
    serve = commands.add_parser(
        "serve",
        help="serve guarded tools to an MCP client over stdin and stdout, or over HTTP on this machine",
        description="Serves guarded tools to an MCP client over stdin and stdout, or with --http to clients on this "
        "machine. MCP_HTTP_TOKEN is a bearer token that HTTP callers have to send; without it every user and program "
        "of this machine may call.",
    )
    servers = serve.add_subparsers(
        dest="server", required=True, metavar="SERVER", help="which server", parser_class=_Parser
    )
    _serve_ops(servers)
    _serve_github(servers)


def _serve_ops(servers: Any) -> None:
    ops = servers.add_parser("ops", help="files, a read-only shell, and a cluster that can only be read")
    _workspace(ops)
    _cluster(ops)
    _guards(ops)
    ops.add_argument(
        "--require-second-wall",
        action="store_true",
        help="do not start where neither Landlock nor bubblewrap confines child processes",
    )
    _http(ops)


def _serve_github(servers: Any) -> None:
    github = servers.add_parser(
        "github",
        help="repositories of GitHub, and issues where they may be opened",
        description="GITHUB_TOKEN is the credential, or GITHUB_APP_ID, GITHUB_APP_INSTALLATION_ID and "
        "GITHUB_APP_PRIVATE_KEY or GITHUB_APP_PRIVATE_KEY_FILE. GITHUB_REPOS lists what may be read, "
        "GITHUB_WRITE_REPOS where issues may be opened (owner/repo,owner/other), GITHUB_API_URL is the address of an "
        "Enterprise server. No .env file is read.",
    )
    github.add_argument(
        "--extended", action="store_true", help="read every repository that the token sees, not only those listed"
    )
    _http(github)


def _run(commands: Any) -> None:
    run = commands.add_parser(
        "run",
        help="run the agent on one task",
        description="Runs the agent on one task. The trace is written to DIR/<run id>/trace.jsonl and echoed to "
        "stderr, the answer goes to stdout. MCP_OPS_MODE chooses mock (the default) or live, MCP_OPS_MODEL and "
        "MCP_OPS_BASE_URL the live model. OPENROUTER_API_KEY is the key of the default endpoint and sent to no other; "
        "MCP_OPS_API_KEY is the key of another one.",
    )
    run.add_argument("task", metavar="TASK", help="what the agent is asked to do")
    _workspace(run)
    _cluster(run)
    _guards(run)
    run.add_argument(
        "--script",
        type=Path,
        metavar="FILE",
        help="mock mode: a JSON list of the model's replies, as in a line's mock",
    )
    run.add_argument("--max-calls", type=_positive, default=8, metavar="N", help="most tool calls (default: 8)")
    run.add_argument("--json", action="store_true", help="print one JSON object instead of the answer's text")
    _runs(run)


def _agent(commands: Any) -> None:
    agent = commands.add_parser(
        "agent",
        help="let a model work on one task with the tools of MCP servers; writes are confirmed by you",
        description="Lets a model work on one task with the tools of MCP servers. Progress goes to stderr, the answer "
        "to stdout, the trace to DIR/<run id>/trace.jsonl. ANTHROPIC_API_KEY or OPENAI_API_KEY is the model's key; "
        "with both, LLM_PROVIDER says anthropic or openai. LLM_MODEL names the model. GITHUB_TOKEN and the other "
        "GITHUB_ variables are for the GitHub server only. Exit status: 0 an answer, 1 no answer, 2 a wrong command "
        "line, 3 an answer but a write was declined because nobody could be asked, 130 Ctrl-C.",
    )
    agent.add_argument("task", metavar="TASK", help="what the agent is asked to do")
    agent.add_argument(
        "--server",
        action="append",
        metavar="[NAME=]COMMAND",
        help="a command that serves MCP over stdin and stdout; github (the default) and ops ARGUMENT... are the "
        "servers of mcp-ops serve; may be repeated",
    )
    agent.add_argument("--max-steps", type=_between(1, 30), default=8, metavar="N", help="most tool calls, 1 to 30 (8)")
    agent.add_argument("--max-writes", type=_between(0, 30), default=3, metavar="N", help="most confirmed writes (3)")
    agent.add_argument(
        "--yes", action="store_true", help="confirm the writes of github and ops, but none that destroys something"
    )
    agent.add_argument(
        "--yes-tool", action="append", default=[], metavar="NAME", help="confirm this tool's calls; may be repeated"
    )
    agent.add_argument(
        "--tool-class",
        action="append",
        default=[],
        type=_tool_class,
        metavar="NAME=CLASS",
        help="what a tool is, whatever it says: read_only, mutating or destructive; may be repeated",
    )
    agent.add_argument("--json", action="store_true", help="print one JSON object instead of the answer's text")
    _runs(agent)


def _report(commands: Any) -> None:
    report = commands.add_parser("report", help="make one page of one or several runs")
    report.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="a run's folder, or its trace.jsonl")
    report.add_argument("--title", default="Trace of guarded agent runs", help="heading of the page")
    report.add_argument(
        "--detail",
        choices=get_args(Detail),
        help="how much of each run the page shows (default: full; redacted with a cluster or a live model)",
    )
    _page(report)


def _demo(commands: Any) -> None:
    demo = commands.add_parser(
        "demo",
        help="run the demo scenarios with the scripted model and make their page",
        description="Runs the demo scenarios with the scripted model and makes their page. Without --kubeconfig the "
        "demo's own cluster is read if it answers: the one of make cluster-up, else the one of make k8s-up. With none, "
        "what needs a cluster shows how its absence looks.",
    )
    demo.add_argument("--scenarios", type=Path, default=SCENARIOS, metavar="FILE", help=f"default: {SCENARIOS}")
    demo.add_argument("--id", action="append", metavar="ID", help="only this scenario; may be repeated")
    _cluster(demo)
    _runs(demo)
    _page(demo)


def _evidence(commands: Any) -> None:
    evidence = commands.add_parser(
        "evidence",
        help="write what shows that each guard rule holds, and the gaps",
        description="Reads what pytest --ops-results=FILE wrote, of one or several runs, and writes which scenario of "
        "which run shows each rule, with dates and versions, as evidence.json and evidence.html.",
    )
    evidence.add_argument("results", nargs="+", type=Path, metavar="RESULTS", help="a results file")
    evidence.add_argument(
        "--out", type=Path, default=EVIDENCE, metavar="DIR", help=f"folder of the two files (default: {EVIDENCE})"
    )


def _workspace(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--workspace", type=_folder, required=True, metavar="DIR", help="the folder that tools may read"
    )


def _guards(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--guards", type=Path, metavar="FILE", help="programs, kinds and secret names that you add (opsguards.toml)"
    )


def _cluster(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kubeconfig", type=Path, metavar="FILE", help="the cluster to read from (default: none)")
    parser.add_argument("--kube-context", "--context", metavar="NAME", help="the context of the kubeconfig")


def _http(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--http", action="store_true", help="serve over HTTP, at http://HOST:PORT/mcp")
    parser.add_argument(
        "--port", metavar="PORT", help=f"with --http: 0 takes a free one (default: MCP_HTTP_PORT, else {HTTP_PORT})"
    )
    parser.add_argument("--host", metavar="HOST", help="with --http: 127.0.0.1 (the default) or ::1, no other address")


def _runs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=Path, default=RUNS, metavar="DIR", help=f"where traces go (default: {RUNS})")


def _page(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", type=Path, default=PAGE, metavar="FILE", help=f"default: {PAGE}")


def _folder(text: str) -> Path:
    """An empty text, such as an unset variable of a shell, would otherwise mean the current folder."""
    if not text:
        raise argparse.ArgumentTypeError("it is empty; name an existing folder")
    return Path(text)


def _positive(text: str) -> int:
    number = int(text) if text.isascii() and text.isdigit() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return number


def _between(least: int, most: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        value = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {least} to {most}")
        return value

    return number


def _tool_class(text: str) -> tuple[str, str]:
    name, _, said = text.rpartition("=")
    if not name or said not in TOOL_CLASSES:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=CLASS with a class of {', '.join(TOOL_CLASSES)}")
    return name, said
