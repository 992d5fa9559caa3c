import xml.etree.ElementTree as ElementTree

import pytest
from opsproject import Project, denied, line, needy, unsafe, wrong


def properties(case: ElementTree.Element) -> dict[str, str]:
    return {each.attrib["name"].removeprefix("opsagent."): each.attrib["value"] for each in case.iter("property")}


@pytest.mark.covers("H13", "H34")
@pytest.mark.parametrize("workers", [[], ["-n2"]], ids=["alone", "xdist"])
def test_each_case_has_short_scalars_and_the_suite_ends_with_what_was_not_proven(
    workers: list[str], project: Project
) -> None:
    project.write(
        line("reads"), denied("guardrail"), wrong("wrong"), unsafe("unsafe"), needy("needy"), line("bad", tsak="")
    )
    project.file("test_other.py", "def test_other():\n    pass\n")
    run = project.either("--junitxml=j.xml", *workers)
    assert run.counts == {"passed": 3, "failed": 3, "skipped": 1}
    root = ElementTree.parse(project.path / "j.xml").getroot()
    cases = {case.attrib["name"]: case for case in root.iter("testcase")}
    found = {name: properties(case) for name, case in cases.items()}
    ran = {"status": "ran", "mode": "mock", "model": "mock", "cluster": "none", "finish": "answer"}
    assert found["reads"] == ran | {
        "location": "scenarios.jsonl:1", "calls": "1", "denials": "0", "turns": "2", "safety": "held", "task": "done",
    } | ({"trace": found["reads"]["trace"]} if "trace" in found["reads"] else {})  # fmt: skip
    assert (found["guardrail"]["denials"], found["guardrail"]["task"]) == ("1", "done")
    assert (found["wrong"]["safety"], found["wrong"]["task"]) == ("held", "not done")
    assert (found["unsafe"]["safety"], found["unsafe"]["task"]) == ("broken", "done")
    assert found["needy"] == {
        "location": "scenarios.jsonl:5", "status": "not_proven", "mode": "mock", "not_proven": "cluster",
    }  # fmt: skip
    assert found["bad"] == {"location": "scenarios.jsonl:6", "status": "bad_line", "mode": "mock"}
    assert found["test_other"] == {}
    message = cases["wrong"].find("failure").attrib["message"]  # type: ignore[union-attr]
    assert message == "scenarios.jsonl:3: expected call 2 kubectl_logs (executed), got read_file (executed)"
    skipped = cases["needy"].find("skipped")
    assert skipped is not None
    assert skipped.text == f"{project.path}/scenarios.jsonl:5: not proven: needs cluster"
    suite = root.find("testsuite/properties")
    assert suite is not None
    assert [(each.attrib["name"], each.attrib["value"]) for each in suite] == [
        ("opsagent.guards", "guards: attacks passed 0/1, harmless refused 0/0"),
        ("opsagent.not_proven", "NOT PROVEN: 1 scenario (cluster 1); rules without evidence: kubectl.secret"),
    ]


@pytest.mark.covers("H13")
def test_traces_are_named_only_when_they_are_kept(project: Project) -> None:
    project.write(line("reads"), wrong("wrong"))
    project.run("--junitxml=j.xml")
    found = {
        case.attrib["name"]: properties(case) for case in ElementTree.parse(project.path / "j.xml").iter("testcase")
    }
    assert "trace" not in found["reads"]
    assert found["wrong"]["trace"].endswith("/trace.jsonl")
    project.run("--junitxml=j.xml", "--ops-trace-dir=kept")
    found = {
        case.attrib["name"]: properties(case) for case in ElementTree.parse(project.path / "j.xml").iter("testcase")
    }
    assert found["reads"]["trace"].startswith(str(project.path / "kept"))
