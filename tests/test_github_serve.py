"""`mcp-ops serve github`: set up by its environment, over stdio and HTTP, in a process of its own."""

import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from githubworld import TOKEN, state, text
from httpserver import http_child
from mcp import StdioServerParameters
from mcp.client import Client
from mcp.shared.exceptions import MCPError

from mcp_ops.cli import main
from mcp_ops.cli.arguments import build_parser
from mcp_ops.evaluation.world.loopback import loopback_socket, served
from mcp_ops.github.client import AppInstallation, Token
from mcp_ops.github.environment import VARIABLES, read_environment
from mcp_ops.github.memory.service import MemoryGitHub
from mcp_ops.github.memory.state import GitHubState
from mcp_ops.servers.github import TOOLS, create_server

SECONDS = 60
"""A deadline for what would otherwise hang; nothing is measured with it."""


@asynccontextmanager
async def github(given: dict[str, Any] | None = None) -> AsyncIterator[tuple[MemoryGitHub, str]]:
    """Run a GitHub on loopback."""
    memory, listener = MemoryGitHub(GitHubState.model_validate(given or state()), token=TOKEN), loopback_socket()
    async with served(memory.asgi, listener):
        yield memory, f"http://127.0.0.1:{listener.getsockname()[1]}"


def command(*arguments: str, cwd: Path | None = None, **environ: str) -> StdioServerParameters:
    return StdioServerParameters(
        command=sys.executable,
        args=["-m", "mcp_ops.cli", "serve", "github", *arguments],
        env={"PATH": os.environ["PATH"], **environ},
        cwd=cwd,
    )


def refusal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], environ: Mapping[str, str]) -> str:
    """Return the one sentence with which the command ends."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert main(["serve", "github"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


@pytest.mark.covers("D3", "D6")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_tools_resources_and_prompts_are_served_over_stdio_in_both_eras(mode: Any) -> None:
    async with github() as (memory, url):
        parameters = command(
            GITHUB_TOKEN=TOKEN, GITHUB_REPOS="acme/web", GITHUB_WRITE_REPOS="acme/web", GITHUB_API_URL=url
        )
        async with Client(parameters, mode=mode) as client:
            tools = (await client.list_tools()).tools
            pulls = await client.call_tool("list_open_pull_requests", {"owner": "acme", "repo": "web"})
            denied = await client.call_tool("list_issues", {"owner": "acme", "repo": "api"})
            created = await client.call_tool("create_issue", {"owner": "acme", "repo": "web", "title": "x"})
            uris = [str(each.uri) for each in (await client.list_resources()).resources]
            watched = (await client.read_resource("devops://watchlist")).contents[0]
            about = (await client.read_resource("github://repo/acme/web")).contents[0]
            with pytest.raises(MCPError, match="GUARD DENIED: acme/api is not on the watch list") as error:
                await client.read_resource("github://repo/acme/api")
            prompt = (await client.get_prompt("morning_standup")).messages[0]
        assert "acme/web#101" in memory.snapshot()
    assert [(tool.name, tool.output_schema is not None) for tool in tools] == [(tool.name, True) for tool in TOOLS]
    assert pulls.structured_content is not None
    assert pulls.structured_content["pull_requests"][0]["checks"]["rollup"] == "failure"
    assert text(denied).startswith("GUARD DENIED: ")
    assert created.is_error is not True
    assert uris == ["devops://watchlist", "github://repo/acme/web"]
    assert json.loads(watched.text) == {"repositories": [{"owner": "acme", "repo": "web"}]}  # type: ignore[union-attr]
    assert json.loads(about.text)["description"] == "The shop"  # type: ignore[union-attr]
    assert error.value.data["rule"] == "github.watchlist"
    assert "get_repo_activity" in prompt.content.text  # type: ignore[union-attr]


async def rule_of(
    environ: Mapping[str, str], tool: str, repo: str, *, extended: bool = False, **more: Any
) -> str | None:
    """Return the rule that stops a call to the server of an environment, in this process; None when it ran."""
    settings = read_environment(environ)
    server = create_server(settings.client, settings.watchlist, write_repos=settings.write_repos, extended=extended)
    async with Client(server) as client:
        reply = await client.call_tool(tool, {"owner": "acme", "repo": repo, **more})
    if settings.client is not None:
        await settings.client.aclose()
    assert reply.structured_content is not None
    rule: str | None = reply.structured_content.get("rule")
    return rule


@pytest.mark.covers("D12", "D13")
@pytest.mark.parametrize(
    ("environ", "rule", "when_extended"),
    [
        ({"GITHUB_REPOS": "acme/api"}, None, None),
        ({"GITHUB_REPOS": "acme/web"}, "github.watchlist", None),
        ({}, "github.watchlist", None),
        ({"GITHUB_REPOS": ""}, "github.watchlist", None),
        ({"GITHUB_REPOS": "acme/api", "GITHUB_TOKEN": ""}, "github.no_token", "github.no_token"),
        ({"GITHUB_REPOS": "acme/api", "GITHUB_TOKEN": "ghp_another"}, "github.unauthorized", "github.unauthorized"),
        ({"GITHUB_REPOS": "acme/api", "GITHUB_API_URL": "http://127.0.0.1:9"}, "github.network", "github.network"),
    ],
)
async def test_each_variable_does_what_it_says(
    environ: dict[str, str], rule: str | None, when_extended: str | None
) -> None:
    async with github() as (_, url):
        given = {"GITHUB_TOKEN": TOKEN, "GITHUB_API_URL": url, **environ}
        assert await rule_of(given, "list_issues", "api") == rule
        assert await rule_of(given, "list_issues", "api", extended=True) == when_extended


@pytest.mark.covers("D12", "D13")
@pytest.mark.parametrize(
    ("listed", "rule"), [("acme/web", None), ("acme/api", "github.write_repos"), ("", "github.write_repos")]
)
async def test_writes_go_only_where_the_variable_says(listed: str, rule: str | None) -> None:
    async with github() as (memory, url):
        environ = {"GITHUB_TOKEN": TOKEN, "GITHUB_API_URL": url, "GITHUB_WRITE_REPOS": listed}
        assert await rule_of(environ, "create_issue", "web", title="x") == rule
        assert ("acme/web#101" in memory.snapshot()) == (rule is None)


@pytest.mark.covers("D12")
async def test_the_flag_extends_what_is_read() -> None:
    async with github() as (_, url), Client(command("--extended", GITHUB_TOKEN=TOKEN, GITHUB_API_URL=url)) as client:
        reply = await client.call_tool("list_issues", {"owner": "acme", "repo": "api"})
    assert reply.is_error is not True


@pytest.mark.covers("D6", "D12")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_over_http_what_one_caller_read_in_private_stops_the_public_writes_of_all(mode: Any) -> None:
    async with github() as (memory, url):
        environ = {"GITHUB_TOKEN": TOKEN, "GITHUB_API_URL": url, "GITHUB_REPOS": "acme/private"}
        with http_child("github", env={**environ, "GITHUB_WRITE_REPOS": "acme/web"}) as child:
            web = {"owner": "acme", "repo": "web", "title": "x"}
            async with Client(child.url, mode=mode) as one, Client(child.url, mode=mode) as other:
                before = await other.call_tool("create_issue", web)
                await one.call_tool("list_issues", {"owner": "acme", "repo": "private"})
                after = await other.call_tool("create_issue", web)
            assert any("use a GitHub token" in line for line in child.said)
        assert "acme/web#102" not in memory.snapshot()
    assert before.is_error is not True
    assert text(after) == "GUARD DENIED: acme/web is public, and acme/private was read, which is private"


@pytest.mark.covers("D13")
async def test_no_env_file_is_loaded(tmp_path: Path) -> None:
    async with github() as (memory, url):
        lines = f"GITHUB_TOKEN={TOKEN}\nGITHUB_REPOS=acme/web\nGITHUB_WRITE_REPOS=acme/web\nGITHUB_API_URL={url}\n"
        for name in (".env", ".env.local", "env"):
            (tmp_path / name).write_text(lines, "utf-8")
        async with Client(command(cwd=tmp_path, GITHUB_REPOS="acme/api")) as client:
            watched = (await client.read_resource("devops://watchlist")).contents[0]
            reply = await client.call_tool("list_issues", {"owner": "acme", "repo": "web"})
            without = await client.call_tool("list_issues", {"owner": "acme", "repo": "api"})
        assert memory.requests == []
    assert json.loads(watched.text) == {"repositories": [{"owner": "acme", "repo": "api"}]}  # type: ignore[union-attr]
    assert text(reply).startswith("GUARD DENIED: acme/web is not on the watch list")
    assert text(without) == "github_no_token: the server was started without GITHUB_TOKEN"


@pytest.mark.covers("D5", "D13")
def test_the_start_says_what_is_missing_and_standard_output_carries_messages_only() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mcp_ops.cli", "serve", "github"],
        env={"PATH": os.environ["PATH"]},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.splitlines() == [
        "mcp-ops: GITHUB_TOKEN is not set: every tool of the github server will answer that it has no token",
        "mcp-ops: GITHUB_REPOS names no repository, so none can be read; write GITHUB_REPOS=owner/repo,owner/other",
    ]


APP = {"GITHUB_APP_ID": "12", "GITHUB_APP_INSTALLATION_ID": "34"}


@pytest.mark.covers("D13")
@pytest.mark.parametrize(
    ("environ", "sentence"),
    [
        ({"GITHUB_REPOS": "acme"}, r"GITHUB_REPOS: 'acme' is no owner/repo; write owner/repo,owner/other without .*"),
        ({"GITHUB_REPOS": "https://github.com/acme/web"}, r"GITHUB_REPOS: 'https://.*' is no owner/repo.*"),
        ({"GITHUB_WRITE_REPOS": "acme/*"}, r"GITHUB_WRITE_REPOS: 'acme/\*' is no owner/repo; .*"),
        ({"GITHUB_TOKEN": f"{TOKEN} x"}, r"GITHUB_TOKEN: .* holds a space .*"),
        ({"GITHUB_TOKEN": TOKEN, "GITHUB_API_URL": "http://ghe.example/api/v3"}, r"GITHUB_API_URL: .* in clear text.*"),
        ({"GITHUB_TOKEN": TOKEN, "GITHUB_API_URL": "ghe.example"}, r"GITHUB_API_URL: .*write it like https://.*"),
        ({"GITHUB_TOKEN": TOKEN, "GITHUB_API_URL": "https://u:p@ghe.example"}, r"GITHUB_API_URL: .*user name.*"),
        ({"GITHUB_TOKEN": TOKEN, **APP}, r"GITHUB_TOKEN and GITHUB_APP_ID are both set; .*"),
        (APP, r"an App needs GITHUB_APP_PRIVATE_KEY or GITHUB_APP_PRIVATE_KEY_FILE too"),
        ({"GITHUB_APP_ID": "12", "GITHUB_APP_PRIVATE_KEY": "x"}, r"an App needs GITHUB_APP_INSTALLATION_ID too"),
        ({**APP, "GITHUB_APP_PRIVATE_KEY": "x", "GITHUB_APP_PRIVATE_KEY_FILE": "y"}, r".* are both set; leave out one"),
        ({**APP, "GITHUB_APP_INSTALLATION_ID": "x1", "GITHUB_APP_PRIVATE_KEY": "x"}, r".*_ID is 'x1'.*"),
        ({**APP, "GITHUB_APP_PRIVATE_KEY": "CANARY-key"}, r"GITHUB_APP_\*: .* no RSA key in PEM form .*"),
        ({**APP, "GITHUB_APP_PRIVATE_KEY_FILE": "nowhere.pem"}, r".*GITHUB_APP_PRIVATE_KEY_FILE cannot be read .*"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_the_environment_is_one_sentence_without_any_secret(
    environ: dict[str, str], sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refusal(monkeypatch, capsys, environ)
    assert re.fullmatch(f"mcp-ops: {sentence}", said), said
    assert [secret for secret in (TOKEN[8:16], "CANARY", "u:p@") if secret in said] == []


@pytest.fixture(scope="module")
def pem() -> str:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    form = serialization.PrivateFormat.TraditionalOpenSSL
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()).decode()


@pytest.mark.covers("D11", "D13")
def test_an_app_is_set_up_by_its_ids_and_its_key_or_the_file_of_it(pem: str, tmp_path: Path) -> None:
    path = tmp_path / "app.pem"
    path.write_text(pem, "utf-8")
    ways = [
        {"GITHUB_APP_PRIVATE_KEY": pem},
        {"GITHUB_APP_PRIVATE_KEY": pem.replace("\n", "\\n")},
        {"GITHUB_APP_PRIVATE_KEY_FILE": str(path)},
    ]
    for way in ways:
        settings = read_environment({**APP, **way})
        assert settings.client is not None
        assert any(secret.stands_in(pem) for secret in settings.client.secrets())
        assert isinstance(settings.client._credentials, AppInstallation)


@pytest.mark.covers("D13")
def test_the_address_is_githubs_own_unless_one_is_named_and_a_token_may_have_space_around_it() -> None:
    plain = read_environment({"GITHUB_TOKEN": f" {TOKEN}\n"}).client
    assert repr(plain) == "RestGitHub(api.github.com)"
    assert plain is not None
    assert isinstance(plain._credentials, Token)
    assert TOKEN not in repr(plain) + repr(plain._credentials)
    enterprise = read_environment({"GITHUB_TOKEN": TOKEN, "GITHUB_API_URL": "https://ghe.example/api/v3/"}).client
    assert repr(enterprise) == "RestGitHub(ghe.example)"
    assert read_environment({}).client is None


@pytest.mark.covers("D13")
def test_the_help_names_every_variable(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        build_parser().parse_args(["serve", "github", "--help"])
    said = capsys.readouterr().out
    assert [name for name in VARIABLES if name not in said] == []


async def test_nothing_of_ops_is_offered_and_nothing_of_github_by_ops(capsys: pytest.CaptureFixture[str]) -> None:
    for argv in (["serve", "github", "--workspace", "."], ["serve", "ops", "--workspace", ".", "--extended"]):
        with pytest.raises(SystemExit) as ended:
            main(argv)
        assert ended.value.code == 2
        assert "unrecognized arguments" in capsys.readouterr().err
