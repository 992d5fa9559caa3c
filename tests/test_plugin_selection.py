import pytest
from opsproject import Project, denied, line, wrong


def names(out: str) -> list[str]:
    return [text.partition("::")[2] for text in out.splitlines() if text.startswith("scenarios.jsonl::")]


@pytest.mark.covers("H14")
@pytest.mark.parametrize(
    ("args", "selected"),
    [
        ([], ["one", "two", "three"]),
        (["-k", "two"], ["two"]),
        (["-k", "guardrail"], ["two"]),
        (["-k", "not guardrail"], ["one", "three"]),
        (["-m", "guardrail"], ["two"]),
        (["-m", "slow or guardrail"], ["two", "three"]),
        (["scenarios.jsonl::one"], ["one"]),
        (["scenarios.jsonl::three", "scenarios.jsonl::one"], ["three", "one"]),
        (["--deselect=scenarios.jsonl::one"], ["two", "three"]),
    ],
    ids=lambda value: " ".join(value) or "nothing",
)
def test_items_are_selected_by_name_tag_and_node_id(args: list[str], selected: list[str], project: Project) -> None:
    project.write(line("one"), denied("two"), line("three", tags=["slow"]))
    run = project.run("--collect-only", "-q", *args)
    assert names(run.out) == selected
    assert run.code == 0


@pytest.mark.covers("H14")
def test_an_empty_selection_keeps_exit_5_and_an_unknown_name_exit_4(project: Project) -> None:
    project.write(line("one"))
    assert project.run("-k", "nothing").code == 5
    assert project.run("scenarios.jsonl::nothing").code == 4


@pytest.mark.covers("H14")
def test_last_failed_and_stepwise_and_exit_first(project: Project) -> None:
    project.write(line("one"), wrong("two"), line("three", tsak="x"), line("four"))
    assert project.run().counts == {"passed": 2, "failed": 2}
    assert project.run("--lf").counts == {"failed": 2}
    assert project.run("--ff", "-x").counts == {"failed": 1}
    assert project.run("--sw").counts == {"passed": 1, "failed": 1}
    project.write(line("one"), line("two"), line("three"), line("four"))
    assert project.run("--sw").counts == {"passed": 3, "deselected": 1}
    assert project.run("-x").counts == {"passed": 4}


@pytest.mark.covers("H14", "H44")
def test_verbose_durations_and_no_traceback_behave(project: Project) -> None:
    project.write(line("one"), wrong("two"))
    run = project.run("-v", "--durations=1", "--durations-min=0", "--tb=no")
    assert "scenarios.jsonl::one PASSED" in run.out
    assert "scenarios.jsonl::two FAILED" in run.out
    assert any("call     scenarios.jsonl::" in text for text in run.out.splitlines())
    assert "| " not in run.out
    assert run.lines("FAILED scenarios.jsonl::two - scenarios.jsonl:2: expected call 2")
    assert [
        text for text in project.run("--tb=line").out.splitlines() if "scenarios.jsonl:2: scenarios.jsonl:2: " in text
    ]


@pytest.mark.covers("H44")
def test_pdb_opens_where_the_outcome_is_at_hand(project: Project) -> None:
    project.write(wrong("two"))
    run = project.start("--pdb", stdin="p outcome.observed.calls[0].tool\nq\n")
    assert "(Pdb) 'read_file'" in run.out
    assert (run.code, run.counts) == (2, {"failed": 1})


@pytest.mark.covers("H14")
def test_tags_are_markers_that_need_no_registration_and_stand_beside_those_of_other_tests(project: Project) -> None:
    project.write(line("one", tags=["slow", "mine"]))
    project.file(
        "test_other.py", "import pytest\n@pytest.mark.slow\ndef test_slow():\n    pass\ndef test_quick():\n    pass\n"
    )
    run = project.run("-m", "slow", "-o", "markers=slow: takes long", "--strict-markers")
    assert run.counts == {"passed": 2, "deselected": 1}
