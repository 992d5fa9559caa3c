import json

import pytest
from opsproject import QUIET, Project, line

HEAVY = (
    *("mcp", "mcp_types", "langgraph", "langchain_core", "pydantic", "jinja2", "httpx", "re2", "asyncio"),
    "mcp_ops.evaluation",
)
SHOW = """
import json, sys

def pytest_unconfigure(config):
    heavy = {heavy!r}
    print("LOADED", json.dumps(sorted(name for name in heavy if name in sys.modules)))
"""


def loaded(project: Project, *args: str) -> list[str]:
    project.file("conftest.py", SHOW.format(heavy=HEAVY))
    # Other people's plugins are kept out: pytest-html imports jinja2, anyio's plugin and langsmith's import more.
    run = project.start("-p", "pytest_opsagent.plugin", *args, env={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}, quiet=())
    assert run.code == 0, run.out + run.err
    found: list[str] = json.loads(next(text for text in run.lines("LOADED")).removeprefix("LOADED "))
    return found


@pytest.mark.covers("H30")
def test_a_run_without_scenarios_imports_neither_agent_nor_server_nor_pydantic_and_prints_nothing(
    project: Project,
) -> None:
    project.file("test_plain.py", "def test_plain():\n    pass\n")
    assert loaded(project) == []
    run = project.start("-p", "pytest_opsagent.plugin", env={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}, quiet=())
    assert "opsagent" not in run.out.replace("pytest_opsagent.plugin", "")


@pytest.mark.covers("H30")
def test_collecting_scenarios_imports_their_models_but_neither_agent_nor_server(project: Project) -> None:
    project.write(line())
    assert loaded(project, "--collect-only") == ["mcp_ops.evaluation", "pydantic", "re2"]


OF_GITHUB = """
import sys

def pytest_unconfigure(config):
    print("LOADED", *sorted(name for name in sys.modules if name.startswith(("mcp_ops.github", "mcp_ops.wire", "jwt"))))
"""


@pytest.mark.covers("H30")
def test_a_run_without_github_imports_what_its_lines_and_rules_look_like_and_no_client_of_it(project: Project) -> None:
    project.file("conftest.py", OF_GITHUB)
    project.write(line())
    run = project.start("-p", "pytest_opsagent.plugin", env={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}, quiet=())
    assert run.code == 0, run.out + run.err
    (loaded_,) = run.lines("LOADED")
    modules = {name for name in loaded_.split()[1:] if name.startswith(("mcp_ops.github", "jwt"))}
    assert modules == {"mcp_ops.github", "mcp_ops.github.memory", "mcp_ops.github.memory.state", "mcp_ops.github.rules"}


def test_the_quiet_flags_of_these_tests_do_not_hide_the_plugin(project: Project) -> None:
    assert "--ops-mode" in project.start("--help", quiet=QUIET).out
