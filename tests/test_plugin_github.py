import re

import pytest
from opsproject import HOSTILE, Project, line, needy, read, script, wrong


@pytest.mark.covers("H13")
def test_a_failed_scenario_is_annotated_on_its_line_and_summed_up(project: Project) -> None:
    project.file("pytest.ini", "[pytest]\n")
    project.write(line("fine"), wrong("wrong"), needy("needy"), line("bad", tsak=""), name="sub/scenarios.jsonl")
    project.file("summary.md", "what was there before\n")
    project.monkeypatch.setenv("GITHUB_ACTIONS", "true")
    project.monkeypatch.setenv("GITHUB_WORKSPACE", str(project.path))
    project.monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project.path / "summary.md"))
    for workers in ([], ["-n2"]):
        run = project.either("-c", "pytest.ini", "sub", *workers)
        wrong_one, bad_one = sorted(run.lines("::"))
        assert wrong_one == (
            "::error file=sub/scenarios.jsonl,line=2,title=wrong::"
            "expected call 2 kubectl_logs (executed), got read_file (executed)"
        )
        assert re.fullmatch(r"::error file=sub/scenarios\.jsonl,line=4,title=bad::tsak is an unknown key; .*", bad_one)
        assert run.out.splitlines()[-2].startswith("NOT PROVEN: 1 scenario (cluster 1)")
    written = (project.path / "summary.md").read_text(encoding="utf-8")
    assert written.startswith("what was there before\n### opsagent\n")
    assert written.count("### opsagent") == 2
    assert written.rstrip().endswith(
        "**NOT PROVEN&#58; 1 scenario &#40;cluster 1&#41;&#59; rules without evidence&#58; kubectl&#46;secret**"
    )
    assert "| wrong | sub&#47;scenarios&#46;jsonl&#58;2 | expected call 2 kubectl&#95;logs" in written


@pytest.mark.covers("H13")
def test_nothing_is_written_outside_a_job_or_without_scenarios(project: Project) -> None:
    project.write(wrong("wrong"))
    assert project.run().lines("::") == []
    project.monkeypatch.setenv("GITHUB_ACTIONS", "true")
    project.monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project.path / "summary.md"))
    project.file("test_other.py", "def test_other():\n    pass\n")
    assert project.run("test_other.py").lines("::") == []
    assert not (project.path / "summary.md").exists()


@pytest.mark.covers("H13", "A26")
def test_outside_text_can_neither_speak_to_the_runner_nor_fetch_a_picture_nor_break_a_fence(project: Project) -> None:
    hostile = HOSTILE.replace("\ud800", "").replace("\x00", "")
    file = "%0A::error::x,line=9.scenarios.jsonl"
    project.write(
        line("hostile", mock=script(read(hostile), hostile), task=hostile, expect={"answer": hostile + "x"}), name=file
    )
    project.monkeypatch.setenv("GITHUB_ACTIONS", "true")
    project.monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project.path / "summary.md"))
    run = project.run("-rA", "-vv")
    assert run.counts == {"failed": 1}
    (annotation,) = [text for text in run.out.splitlines() if text.lstrip().startswith("::")]
    assert annotation.startswith("::error file=%250A%3A%3Aerror%3A%3Ax%2Cline=9.scenarios.jsonl,line=1,title=hostile::")
    assert "##[" not in run.out
    assert "##vso[" not in run.out
    written = (project.path / "summary.md").read_text(encoding="utf-8")
    body = written.split("### opsagent\n")[1].replace("|---|---|---|", "").replace("&#", "")
    assert not set("`<>![]()\\@\x1b") & set(body)
    assert "http:" not in body
    (row,) = [text for text in written.splitlines() if text.startswith("| hostile")]
    assert row.count("|") == 4


def test_a_summary_file_that_cannot_be_written_is_said_and_hides_nothing(project: Project) -> None:
    project.write(wrong("wrong"))
    project.monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project.path / "no/such/folder/summary.md"))
    run = project.run()
    assert run.lines("opsagent: the job summary cannot be written: No such file or directory")
    assert run.lines("mock: 1 scenario: 1 failed")
