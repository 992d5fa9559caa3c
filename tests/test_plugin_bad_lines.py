import json
import re

import pytest
from opsproject import HOSTILE, Project, line

BAD = [
    ('{"id": "a", "tsak": "x", "mock": [], "expect": {}}', "a", '1:13: tsak is an unknown key; did you mean "task"?'),
    ('{"id": "a", "id": "b"}', "a", '1:13: the key "id" stands twice'),
    ('{"id": "a", "task": NaN}', "a", "1:21: NaN is not JSON"),
    ('{"id": "a", "task": "x"', "a", "1:24: a comma or } is missing"),
    ("not json at all", "line-1", "1:1: "),
    ('{"id": "A b", "task": "x", "mock": [], "expect": {}}', "line-1", "1:8: id "),
    ('["a"]', "line-1", "1:1: "),
]


@pytest.mark.covers("H14")
@pytest.mark.parametrize(("text", "name", "beginning"), BAD, ids=[text[:30] for text, _, _ in BAD])
def test_a_bad_line_fails_alone_and_says_line_and_column(
    text: str, name: str, beginning: str, project: Project
) -> None:
    project.write(text, line("fine"))
    run = project.run("-rA")
    assert run.counts == {"passed": 1, "failed": 1}
    assert run.lines(f"FAILED scenarios.jsonl::{name} - scenarios.jsonl:{beginning}")
    assert "Traceback" not in run.out
    assert "again: pytest 'scenarios.jsonl::" + name + "' --ops-mode=mock" in run.out


@pytest.mark.covers("H14")
def test_of_two_equal_ids_the_first_runs_and_the_later_names_both_lines(project: Project) -> None:
    project.write("// a comment", line("twice"), "", line("twice"), line("other"))
    run = project.run("-v")
    assert run.counts == {"passed": 2, "failed": 1}
    first = run.lines("FAILED scenarios.jsonl::twice@4 - scenarios.jsonl:4:")[0]
    assert "on line 2 already and again on line 4" in first


@pytest.mark.covers("H14")
def test_a_bad_line_keeps_its_id_and_tags_and_fails_in_the_call_phase(project: Project) -> None:
    project.write(line("known", tags=["mine"], wrold={}))
    run = project.run("-v", "-m", "mine", "--junitxml=j.xml")
    assert run.counts == {"failed": 1}
    assert "scenarios.jsonl::known FAILED" in run.out
    assert "<failure message=" in (project.path / "j.xml").read_text(encoding="utf-8")


@pytest.mark.covers("H14", "H34")
def test_a_bad_line_is_selected_under_any_mark_in_its_place_and_others_are_not(project: Project) -> None:
    project.write(
        line("a"), line("b", x=1), line("c", tags=["mine"]), line("d", y=1), line("e", tags=["mine"]), line("f")
    )
    for expression in ("mine", "not other and mine", "mine or unknown"):
        run = project.run("--collect-only", "-q", "-m", expression, "-o", "markers=other\nunknown")
        names = [text.partition("::")[2] for text in run.lines("scenarios.jsonl::")]
        assert names == ["b", "c", "d", "e"], expression
        assert "4/6 tests collected (2 deselected)" in run.out
    run = project.run("-m", "mine")
    assert run.counts == {"passed": 2, "failed": 2, "deselected": 2}


@pytest.mark.covers("H14", "H34")
@pytest.mark.parametrize(
    "args",
    [["-k", "fine"], ["scenarios.jsonl::fine"], ["--deselect=scenarios.jsonl::wrong"], ["-m", "mine", "-k", "fine"]],
    ids=" ".join,
)
def test_a_bad_line_that_is_not_selected_is_named_in_the_summary(args: list[str], project: Project) -> None:
    project.write(line("fine", tags=["mine"]), line("wrong", tsak="x"))
    run = project.run(*args)
    assert (run.code, run.counts["passed"]) == (0, 1)
    said = run.lines("bad line that was not selected: ")
    assert len(said) == 1
    assert re.fullmatch(r".*: scenarios\.jsonl:2:\d+: tsak is an unknown key; did you mean \"task\"\?", said[0])


@pytest.mark.covers("H14", "H34")
def test_workers_of_xdist_tell_which_bad_lines_were_not_selected(project: Project) -> None:
    project.write(line("fine"), line("wrong", tsak="x"))
    run = project.start("-k", "fine", "-n2")
    assert (run.code, run.counts) == (0, {"passed": 1})
    assert len(run.lines("bad line that was not selected: scenarios.jsonl:2:")) == 1


@pytest.mark.covers("H14")
def test_a_world_or_a_server_that_is_not_there_fails_in_the_call_phase_with_its_sentence(project: Project) -> None:
    project.write(line("no-world", world={"workspace": "nowhere"}), line("no-server", server="mine"), line("fine"))
    run = project.run("-v")
    assert run.counts == {"passed": 1, "failed": 2}
    assert "ERROR" not in run.out
    assert "nowhere" in run.lines("FAILED scenarios.jsonl::no-world - scenarios.jsonl:1: ")[0]
    assert "mine" in run.lines("FAILED scenarios.jsonl::no-server - scenarios.jsonl:2: ")[0]


@pytest.mark.covers("H14")
def test_hostile_text_in_a_bad_line_begins_no_line_and_reaches_no_terminal_raw(project: Project) -> None:
    project.write(json.dumps({"id": "a", HOSTILE: 1, "task": HOSTILE}), "::error::owned", "##[error]owned")
    project.monkeypatch.setenv("GITHUB_ACTIONS", "true")
    run = project.run("-rA")
    assert run.counts == {"failed": 3}
    for character in "\x1b\x00\u202e\x07":
        assert character not in run.out
    assert [
        text for text in run.out.splitlines() if text.lstrip().startswith("::") and "file=scenarios" not in text
    ] == []
    assert "##[" not in run.out
    assert "##vso[" not in run.out


def test_a_file_that_cannot_be_read_is_a_collection_error_of_one_sentence(project: Project) -> None:
    # A regular file that opens and whose first read fails, for root too.
    project.path.joinpath("scenarios.jsonl").symlink_to("/proc/self/mem")
    run = project.run()
    assert (run.code, run.counts) == (2, {"error": 1})
    assert "scenarios.jsonl: cannot be read: Input/output error" in run.out
    assert "Traceback" not in run.out
