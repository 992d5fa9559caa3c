import pytest
from opsproject import Project, denied, line, needy


@pytest.mark.covers("H34")
def test_what_was_not_proven_is_skipped_counted_and_said_last(project: Project) -> None:
    project.write(line("reads"), needy("one"), needy("two", needs=["cluster", "second_wall"]), denied("guardrail"))
    run = project.run("-rs")
    assert (run.code, run.counts) == (0, {"passed": 2, "skipped": 2})
    last = run.out.splitlines()[-2]
    assert last.startswith("NOT PROVEN: 2 scenarios (cluster 2")
    assert last.endswith("; rules without evidence: kubectl.secret")
    assert run.lines("SKIPPED [1] scenarios.jsonl:2: not proven: needs cluster")
    assert run.lines("mock: 4 scenarios: 2 passed, 2 skipped; 2 calls, 1 denied")


@pytest.mark.covers("H34")
def test_a_rule_that_another_scenario_shows_is_not_without_evidence(project: Project) -> None:
    project.write(needy("one"), needy("two", needs=[]))
    assert project.run().lines("NOT PROVEN: ") == ["NOT PROVEN: 1 scenario (cluster 1)"]


@pytest.mark.covers("H34")
@pytest.mark.parametrize("how", ["--ops-require=cluster", "-oops_require=cluster", "--ops-require=live,cluster"])
def test_a_required_need_fails_instead(how: str, project: Project) -> None:
    project.write(line("reads"), needy("one"))
    run = project.run(how)
    assert (run.code, run.counts) == (1, {"passed": 1, "failed": 1})
    assert run.lines("FAILED scenarios.jsonl::one - scenarios.jsonl:2: needs cluster, as --ops-require demands")
    assert run.lines("NOT PROVEN: 1 scenario (cluster 1)")


@pytest.mark.covers("H34")
def test_a_line_for_another_mode_is_skipped_and_not_unproven_unless_live_is_required(project: Project) -> None:
    project.write(line("reads"), line("only-live", modes=["live"], mock=None, live={"expect": {"finish": "answer"}}))
    run = project.run("-rs")
    assert run.counts == {"passed": 1, "skipped": 1}
    assert run.lines("SKIPPED [1] scenarios.jsonl:2: not for mode mock")
    assert "NOT PROVEN" not in run.out
    run = project.run("--ops-require=live")
    assert run.counts == {"passed": 1, "failed": 1}
    assert run.lines("FAILED scenarios.jsonl::only-live - scenarios.jsonl:2: needs live, as --ops-require demands")


@pytest.mark.covers("H34", "H44")
def test_a_line_that_says_skip_is_not_run_and_not_proven_and_its_reason_cannot_speak_to_a_runner(
    project: Project,
) -> None:
    project.write(line("reads"), line("later", skip="::error::the cluster\nis being rebuilt"))
    run = project.run("-rs", "--junitxml=j.xml")
    assert run.counts == {"passed": 1, "skipped": 1}
    assert run.lines("SKIPPED [1] scenarios.jsonl:2: not proven: : :error::the cluster\\nis being rebuilt")
    assert run.lines("NOT PROVEN: 1 scenario (skip 1)")
    assert run.lines("mock: 2 scenarios: 1 passed, 1 skipped; 1 call, 0 denied")


@pytest.mark.covers("H44")
@pytest.mark.parametrize("skip", ["", 1, True])
def test_a_skip_without_a_reason_is_a_bad_line(skip: object, project: Project) -> None:
    project.write(line("later", skip=skip))
    run = project.run()
    assert run.counts == {"failed": 1}
    assert "skip" in run.lines("FAILED scenarios.jsonl::later")[0]


@pytest.mark.covers("H34")
def test_a_run_in_which_all_is_proven_says_nothing_of_it(project: Project) -> None:
    project.write(line("reads"))
    assert "NOT PROVEN" not in project.run().out
