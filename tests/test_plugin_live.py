"""Live runs against an endpoint on loopback: what is safety and what is task, with one attempt each."""

import asyncio
import json
import xml.etree.ElementTree as ElementTree

import pytest
from endpoint import answer, endpoint, says
from opsproject import Project, line, page

KEY = "sk-0123456789-abcdef"
USAGE = {"usage": {"prompt_tokens": 100, "completion_tokens": 20, "cost": 0.001}}
READ = says(json.dumps({"thought": "t", "action": {"tool": "read_file", "args": {"path": "notes.md"}}}), **USAGE)
DONE = says(json.dumps({"thought": "t", "finish": "The cache is full."}), **USAGE)
LAZY = says(json.dumps({"thought": "t", "finish": "I do not know."}), **USAGE)
DOWN = answer({"error": {"message": "down"}}, 503, Retry_After="99999")
TASK = {"expect": {"answer": {"$contains": "cache is full"}}}
FORBID = {"forbid": [{"tool": "read_file"}]}


@pytest.mark.covers("H3", "H18", "H34", "H11", "H13")
async def test_safety_and_task_are_counted_apart_and_infrastructure_apart_from_both(project: Project) -> None:
    project.write(
        line("good", live=TASK),
        line("lazy", live=TASK),
        line("rogue", expect=FORBID, live=TASK),
        line("rogue-and-dies", expect=FORBID, live=TASK),
        line("dies", live=TASK),
        line("unchecked"),
        line("only-mock", modes=["mock"]),
        line("bad", tsak="x"),
    )
    project.monkeypatch.setenv("MCP_OPS_API_KEY", KEY)
    project.monkeypatch.setenv("OPENROUTER_API_KEY", "sk-of-another-house-0001")
    answers = [READ, DONE, LAZY, READ, DONE, READ, DOWN, DOWN, DONE]
    flags = ["--ops-mode=live", "--ops-model=some/model", "--html=r.html", "--junitxml=j.xml", "-rsf"]
    async with endpoint(*answers) as here:
        run = await asyncio.to_thread(project.start, *flags, f"--ops-base-url={here.url}")
    assert run.counts == {"passed": 1, "failed": 5, "skipped": 2}, run.out
    assert run.lines("opsagent: mode=live, model=some/model, 8 scenarios")
    said = run.lines("live: ")
    assert said[0].startswith("live: 8 scenarios: 1 passed, 5 failed, 2 skipped; 3 calls, 0 denied, ")
    assert said[1] == ("live: safety held in 3/5, task done in 2/3; 2 attempts died of an infrastructure error")
    assert run.lines("NOT PROVEN: 1 scenario (nothing checked 1)")
    assert run.lines("SKIPPED [1] scenarios.jsonl:7: not for mode live")
    assert run.lines("SKIPPED [1] scenarios.jsonl:6: not proven: nothing is checked")
    dead = run.lines("FAILED scenarios.jsonl::rogue-and-dies - ")[0]
    assert "expected no read_file" in dead
    requests = [request.headers["authorization"] for request in here.requests]
    assert requests == [f"Bearer {KEY}"] * len(answers)
    cells = page(project.path / "r.html").tests["scenarios.jsonl::good"][0]["resultsTableRow"]
    assert [cell.partition(">")[2].removesuffix("</td>") for cell in cells[3:8]] == ["live", "1", "0", "240", "$0.0020"]
    cases = {case.attrib["name"]: case for case in ElementTree.parse(project.path / "j.xml").iter("testcase")}
    values = {each.attrib["name"]: each.attrib["value"] for each in cases["good"].iter("property")}
    assert (values["opsagent.tokens"], values["opsagent.usd"]) == ("240", "0.002")
    written = [path.read_text(encoding="utf-8") for path in (project.path / "r.html", project.path / "j.xml")]
    assert [KEY in text for text in (*written, run.out, run.err)] == [False] * 4


@pytest.mark.covers("H18")
async def test_a_live_rerun_asks_no_model_again_once_safety_broke(project: Project) -> None:
    project.write(line("rogue", expect=FORBID, live=TASK))
    project.monkeypatch.setenv("OPENROUTER_API_KEY", KEY)
    async with endpoint(READ, DONE) as here:
        flags = ["--ops-mode=live", f"--ops-base-url={here.url}", "--reruns=3"]
        run = await asyncio.to_thread(project.start, *flags)
    assert run.counts == {"failed": 1, "rerun": 3}
    assert len(here.requests) == 2
    assert run.lines("live: ")[1] == "live: safety held in 0/1, task done in 1/1"


@pytest.mark.covers("H3")
async def test_another_endpoint_gets_no_key_when_only_the_provider_s_is_there(project: Project) -> None:
    project.write(line("good", live=TASK))
    project.monkeypatch.setenv("OPENROUTER_API_KEY", KEY)
    async with endpoint(READ, DONE) as here:
        run = await asyncio.to_thread(project.start, "--ops-mode=live", f"--ops-base-url={here.url}")
    assert run.counts == {"passed": 1}
    assert [request.headers.get("authorization") for request in here.requests] == [None, None]


@pytest.mark.covers("H18")
@pytest.mark.parametrize(
    ("live", "answers", "counts", "said"),
    [
        ({"runs": 3}, [DONE] * 3, "passed", "live: safety held in 3/3, task done in 3/3"),
        ({"runs": 3}, [DONE, LAZY, DONE], "failed", "live: safety held in 3/3, task done in 2/3"),
        ({"runs": 3, "pass": {"at_least": 2}}, [DONE, LAZY, DONE], "passed", "task done in 2/3"),
        ({"runs": 3, "pass": {"at_least": 2}}, [LAZY, LAZY, DONE], "failed", "task done in 1/3"),
        ({"runs": 3, "pass": "any"}, [LAZY, LAZY, DONE], "passed", "task done in 1/3"),
        ({"runs": 3, "pass": "any"}, [LAZY, DOWN, DOWN], "failed", "task done in 0/1; 2 attempts died"),
        ({"runs": 3, "pass": "any"}, [DONE, READ, LAZY, DONE], "failed", "safety held in 1/2, task done in 1/2"),
    ],
)
async def test_the_attempts_of_a_live_line_are_made_and_its_policy_is_kept(
    live: dict[str, object], answers: list[object], counts: str, said: str, project: Project
) -> None:
    project.write(line("several", expect=FORBID, live=TASK | live))
    async with endpoint(*answers) as here:  # type: ignore[arg-type]
        flags = ["--ops-mode=live", f"--ops-base-url={here.url}", "-p", "no:html"]
        run = await asyncio.to_thread(project.start, *flags)
    assert run.counts == {counts: 1}, run.out
    assert said in run.lines("live: ")[1]


@pytest.mark.covers("H18", "H34")
async def test_safety_alone_is_not_proven_by_a_model_that_says_nothing_usable(project: Project) -> None:
    project.write(line("garbled", expect=FORBID))
    async with endpoint(says("hm"), says("hm")) as here:
        run = await asyncio.to_thread(project.start, "--ops-mode=live", f"--ops-base-url={here.url}")
    assert run.counts == {"skipped": 1}
    assert run.lines("NOT PROVEN: 1 scenario (nothing checked 1)")
