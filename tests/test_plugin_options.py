from pathlib import Path
from typing import Any

import pytest
from opsproject import Project

from mcp_ops.evaluation.config import RunConfig
from pytest_opsagent.configuration import run_config
from pytest_opsagent.options import OPTIONS, markdown_table, value_of

FLAGS = [option for option in OPTIONS if option.flag]
WRITTEN: dict[str, tuple[str, Any]] = {
    "mode": ("live", "live"),
    "model": ("some/model", "some/model"),
    "base-url": ("http://127.0.0.1:1/v1", "http://127.0.0.1:1/v1"),
    "response-schema": ("true", True),
    "transport": ("stdio", "stdio"),
    "kubeconfig": ("kube.yaml", "kube.yaml"),
    "guards": ("opsguards.toml", "opsguards.toml"),
    "kube-context": ("staging", "staging"),
    "allow-writes": ("a,b", frozenset({"a", "b"})),
    "clusters": ("5c3f-a,77d0-b", frozenset({"5c3f-a", "77d0-b"})),
    "require": ("cluster", frozenset({"cluster"})),
    "trace-dir": ("traces", "traces"),
    "report-detail": ("verdicts", "verdicts"),
    "results": ("results.json", "results.json"),
    "echo": ("true", True),
    "guard-coverage": ("true", True),
    "mutate-guards": ("true", True),
    "max-calls": ("3", 3),
    "max-seconds": ("2.5", 2.5),
    "servers": ("notes = python -m notes", ("notes = python -m notes",)),
    "known-survivors": ("path.special = no FIFO", ("path.special = no FIFO",)),
    "agent": ("mine:agent", "mine:agent"),
}
OTHER = {
    "mode": "mock",
    "transport": "memory",
    "max-calls": "9",
    "max-seconds": "9",
    "require": "live",
    "report-detail": "full",
}


def parsed(project: Project, *args: str, ini: str = "") -> pytest.Config:
    project.file("pytest.ini", f"[pytest]\n{ini}")
    return project.pytester.parseconfig("-p", "no:langsmith_plugin", *args)


def test_the_table_of_values_below_names_every_option() -> None:
    assert sorted(WRITTEN) == sorted(option.name for option in OPTIONS)


@pytest.mark.parametrize("option", FLAGS, ids=lambda option: option.name)
def test_a_flag_is_read_and_wins_over_environment_and_ini(option: Any, project: Project) -> None:
    text, value = WRITTEN[option.name]
    if option.env:
        project.monkeypatch.setenv(option.env, "from-the-environment")
    flag = option.flag_name if option.kind == "switch" else f"{option.flag_name}={text}"
    ini = "false" if option.kind == "switch" else OTHER.get(option.name, "from-the-ini-file")
    assert value_of(parsed(project, flag, ini=f"{option.key} = {ini}\n"), option.name) == value


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_an_ini_key_is_read_when_there_is_no_flag(option: Any, project: Project) -> None:
    text, value = WRITTEN[option.name]
    assert value_of(parsed(project, ini=f"{option.key} = {text}\n"), option.name) == value


@pytest.mark.covers("H30")
def test_nothing_is_given_by_default_and_the_documented_defaults_are_the_harness_own(project: Project) -> None:
    config = parsed(project)
    assert [value_of(config, option.name) for option in OPTIONS] == [None] * len(OPTIONS)
    made, plain = run_config(config, trace_dir=Path("t"), environ={}), RunConfig()
    fields = ("mode", "model", "base_url", "transport", "limits", "servers", "agent", "allow_writes", "kubeconfig")
    assert [getattr(made, name) for name in fields] == [getattr(plain, name) for name in fields]
    documented = {option.name: option.default for option in OPTIONS}
    assert documented["model"] == plain.model
    assert documented["base-url"] == plain.base_url
    assert documented["max-calls"] == str(plain.limits.max_calls)
    assert float(documented["max-seconds"]) == plain.limits.seconds


def test_environment_stands_between_flag_and_ini_but_never_sets_the_mode(project: Project) -> None:
    config = parsed(project, ini="ops_model = from-ini\nops_base_url = http://ini\n")
    environ = {"MCP_OPS_MODEL": "from-env", "MCP_OPS_BASE_URL": "http://env", "MCP_OPS_MODE": "live"}
    made = run_config(config, trace_dir=Path("t"), environ=environ | {"MCP_OPS_API_KEY": "k"})
    assert (made.mode, made.model, made.base_url, made.api_key) == ("mock", "from-env", "http://env", None)


@pytest.mark.parametrize(
    ("base_url", "key"),
    [
        (None, "provider"),
        ("https://openrouter.ai/api/v1", "provider"),
        (" https://OPENROUTER.ai/api/v2/ ", "provider"),
        ("http://127.0.0.1:8080/v1", "other"),
        ("https://openrouter.ai.example.com/api/v1", "other"),
        ("https://openrouter.ai@example.com/api/v1", "other"),
        ("https://example.com/https://openrouter.ai/api/v1", "other"),
        ("no url at all", "other"),
    ],
)
def test_the_provider_s_key_goes_to_the_provider_s_host_only(base_url: str | None, key: str, project: Project) -> None:
    flags = ["--ops-mode=live", *([f"--ops-base-url={base_url}"] if base_url else [])]
    environ = {"OPENROUTER_API_KEY": "provider", "MCP_OPS_API_KEY": "other"}
    made = run_config(parsed(project, *flags), trace_dir=Path("t"), environ=environ)
    assert made.api_key == key
    assert f"'{key}'" not in repr(made)


def test_everything_reaches_the_harness(project: Project) -> None:
    ini = (
        "ops_agent = mine:agent\nops_clusters =\n  5c3f-a\n  77d0-b\n"
        "ops_servers =\n  notes = python -m 'my notes' {workspace}\n"
        "  notes.denied = ^REFUSED\n  notes.mutating = false\n  other = pkg.mod:create\n"
    )
    flags = ["--ops-mode=live", "--ops-base-url=http://x", "--ops-transport=stdio", "--ops-kube-context=c"]
    flags += [
        "--ops-allow-writes=a",
        "--ops-allow-writes=b,c",
        "--ops-max-calls=3",
        "--ops-max-seconds=4",
        "--ops-echo",
    ]
    made = run_config(parsed(project, *flags, "--ops-response-schema", ini=ini), trace_dir=Path("t"), environ={})
    assert (made.mode, made.base_url, made.transport, made.kube_context) == ("live", "http://x", "stdio", "c")
    assert made.allow_writes == {"a", "b", "c"}
    assert made.clusters == {"5c3f-a", "77d0-b"}
    assert (made.limits.max_calls, made.limits.seconds, made.echo, made.response_schema) == (3, 4.0, True, True)
    assert (made.agent, made.rootdir, made.trace_dir) == ("mine:agent", project.path, Path("t"))
    notes, other = made.servers["notes"], made.servers["other"]
    assert (notes.command, notes.factory) == (("python", "-m", "my notes", "{workspace}"), None)
    assert (notes.denied_pattern, notes.mutating) == ("^REFUSED", False)
    assert (other.command, other.factory, other.mutating) == ((), "pkg.mod:create", True)


def test_a_path_on_the_command_line_starts_where_pytest_was_started_and_one_in_the_ini_file_at_that_file(
    project: Project,
) -> None:
    from pytest_opsagent.configuration import path_of

    project.file("below/keep", "")
    project.monkeypatch.chdir(project.path / "below")
    config = parsed(project, "--ops-trace-dir=here", "--rootdir=..", "-c", "../pytest.ini", ini="ops_kubeconfig = k\n")
    assert path_of(config, "trace-dir") == project.path / "below" / "here"
    assert path_of(config, "kubeconfig") == project.path / "k"


WRONG = [
    ("ops_max_calls = 0", "ops_max_calls in the ini file: '0' is not a whole number from 1 to 1000"),
    ("ops_max_seconds = -1", "is not a number of seconds above 0, at most 86400"),
    ("ops_max_seconds = nan", "is not a number of seconds above 0"),
    ("ops_mode = alive", "ops_mode in the ini file: 'alive' is none of mock, live"),
    ("ops_require = luck", "--ops-require: luck is no need; known are cluster, second_wall, live"),
    ("ops_agent = mine", "ops_agent: 'mine' is not of the form `module:callable`"),
    ("ops_servers = notes", "ops_servers: 'notes': write `name = command …` or `name = module:factory`"),
    ("ops_servers = ops = python", "`ops` is a server that ships here; choose another name"),
    ("ops_servers = github = python", "`github` is a server that ships here; choose another name"),
    ("ops_servers = n.denied = x", "ops_servers: 'n': nothing says how to start it; add `n = command …`"),
    ("ops_servers =\n a = x\n a = y", "ops_servers: 'a = y': `a` is set twice"),
    ("ops_servers =\n a = x\n a.denied = (", "ops_servers: 'a.denied = (': not an RE2 pattern: missing ): ("),
    ("ops_servers =\n a = x\n a.speed = 3", "a server has the settings `denied = RE2 pattern`, `mutating = true` or"),
    (
        "ops_servers =\n a = x\n a.grant = roots, sampling",
        "sampling cannot be granted; what a server may ask of its client is roots",
    ),
    ("ops_servers = a = 'x", "the command cannot be split: No closing quotation"),
]


@pytest.mark.parametrize(("ini", "sentence"), WRONG, ids=[ini for ini, _ in WRONG])
def test_a_setting_that_cannot_be_right_is_one_sentence_and_exit_4(ini: str, sentence: str, project: Project) -> None:
    project.file("pytest.ini", f"[pytest]\n{ini}\n")
    project.write()
    result = project.pytester.runpytest_inprocess("-p", "no:langsmith_plugin", "-p", "no:asyncio")
    assert result.ret == 4
    assert [text for text in result.errlines if text] == [text for text in result.errlines if sentence in text]
    assert len([text for text in result.errlines if text]) == 1


def test_numbers_and_switches_keep_their_type_in_a_native_toml_table(project: Project) -> None:
    if pytest.version_tuple < (9, 0):
        pytest.skip("native TOML tables came with pytest 9")
    project.file(
        "pytest.toml", '[pytest]\nops_max_calls = 3\nops_max_seconds = 1.5\nops_echo = true\nops_require = ["live"]\n'
    )
    config = project.pytester.parseconfig("-p", "no:langsmith_plugin")
    values = [value_of(config, name) for name in ("max-calls", "max-seconds", "echo", "require")]
    assert values == [3, 1.5, True, frozenset({"live"})]


def test_help_and_documentation_come_from_the_table(project: Project) -> None:
    shown = project.start("--help").out
    table = markdown_table()
    for option in OPTIONS:
        assert option.key in shown
        assert f"`{option.key}`" in table
        assert not option.flag or option.flag_name in shown
    assert "guarded ops agents, evaluated by scenarios" in shown
    assert "--ops-servers" not in shown


def test_the_readme_holds_the_table() -> None:
    assert markdown_table() in Path(__file__).parent.parent.joinpath("README.md").read_text(encoding="utf-8")
