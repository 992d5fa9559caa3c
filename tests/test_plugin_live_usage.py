import pytest
from opsproject import Project, line

SENTENCE = (
    "ERROR: --ops-mode=live needs a key for the default endpoint: set OPENROUTER_API_KEY, or name an OpenAI-compatible "
    "endpoint with --ops-base-url=URL, or run the scripts with --ops-mode=mock"
)


@pytest.mark.covers("H3")
@pytest.mark.parametrize("args", [[], ["-n2"], ["-q", "-k", "reads"], ["-x", "-p", "no:html"]], ids=" ".join)
def test_live_without_a_key_is_one_sentence_and_exit_4_before_anything_runs(args: list[str], project: Project) -> None:
    project.write(line())
    run = project.start("--ops-mode=live", *args)
    assert run.code == 4
    assert [text for text in run.err.splitlines() if text] == [SENTENCE]
    assert "passed" not in run.out
    assert "INTERNALERROR" not in run.out


@pytest.mark.covers("H3")
@pytest.mark.parametrize(
    "args", [["--collect-only"], ["--help"], ["--markers"], ["--version"], ["--fixtures"]], ids=" ".join
)
def test_what_runs_no_item_needs_no_key(args: list[str], project: Project) -> None:
    project.write(line())
    project.file("pytest.ini", "[pytest]\nops_mode = live\n")
    run = project.start(*args)
    assert run.code == 0, run.err
    assert SENTENCE not in run.err


@pytest.mark.covers("H3")
def test_a_stray_variable_cannot_turn_a_run_live(project: Project) -> None:
    project.write(line())
    run = project.start("--collect-only", env={"MCP_OPS_MODE": "live", "OPS_MODE": "live"})
    assert run.lines("opsagent: mode=mock")
    project.file("pytest.ini", "[pytest]\nops_mode = live\n")
    assert project.start("--collect-only").lines("opsagent: mode=live, model=google/gemini-2.5-flash")
