import json

import pytest
from opsproject import Project, denied, line, wrong


@pytest.mark.covers("H1")
def test_each_line_is_an_item_with_its_node_id_and_place(project: Project) -> None:
    project.write("// a comment", line("guardrail"), "", line("second"), name="scenarios/scenarios.jsonl")
    project.write(line("third"), name="scenarios/more.scenarios.jsonl")
    for name in ("other.jsonl", "myscenarios.jsonl", "scenarios.json", "scenarios.jsonl.bak"):
        project.file(name, "no scenario\n")
    items, record = project.pytester.inline_genitems("-p", "no:langsmith_plugin", "-p", "no:asyncio")
    assert [item.nodeid for item in items] == [
        "scenarios/more.scenarios.jsonl::third",
        "scenarios/scenarios.jsonl::guardrail",
        "scenarios/scenarios.jsonl::second",
    ]
    path = project.path / "scenarios/scenarios.jsonl"
    assert [item.reportinfo() for item in items[1:]] == [
        (path, 1, "scenario: guardrail"),
        (path, 3, "scenario: second"),
    ]
    assert items[1].location == ("scenarios/scenarios.jsonl", 1, "scenario: guardrail")
    assert record.getfailedcollections() == []


@pytest.mark.covers("H1")
def test_a_byte_order_mark_crlf_and_separators_of_unicode_do_not_move_lines(project: Project) -> None:
    texts = [json.dumps(line("one", title="a\u2028b"), ensure_ascii=False), "", json.dumps(wrong("two"))]
    (project.path / "scenarios.jsonl").write_bytes("\r\n".join(texts).encode("utf-8-sig"))
    run = project.run()
    assert run.counts == {"passed": 1, "failed": 1}
    assert run.lines("FAILED scenarios.jsonl::two - scenarios.jsonl:3: expected call 2")


@pytest.mark.covers("H1", "H14")
def test_scenarios_run_beside_functions_and_leave_them_their_event_loop(project: Project) -> None:
    project.file(
        "a/test_first.py",
        "import asyncio, pytest\n\n"
        "def test_sets_a_loop(request):\n"
        "    loop = request.config.loop = asyncio.new_event_loop()\n"
        "    asyncio.set_event_loop(loop)\n",
    )
    project.write(line("one"), denied("two"), name="b/scenarios.jsonl")
    project.file(
        "c/test_last.py",
        "import asyncio\n\n"
        "def test_finds_it_again(request):\n"
        "    loop = request.config.loop\n"
        "    assert asyncio.get_event_loop_policy().get_event_loop() is loop\n"
        "    asyncio.set_event_loop(None)\n"
        "    loop.close()\n",
    )
    assert project.run().counts == {"passed": 4}


@pytest.mark.covers("H14", "H30")
def test_one_line_says_the_mode_and_nothing_is_said_when_quiet(project: Project) -> None:
    project.write(line("one"), denied("two"))
    assert project.run().lines("opsagent: ") == ["opsagent: mode=mock, 2 scenarios"]
    assert project.run("--ops-transport=stdio", "--collect-only", "-k", "one").lines("opsagent: ") == [
        "opsagent: mode=mock, transport=stdio, 1 scenario"
    ]
    assert project.run("-q").lines("opsagent: ") == []


def test_the_langsmith_plugin_is_named_once_where_it_is_loaded(project: Project) -> None:
    pytest.importorskip("langsmith.pytest_plugin", reason="no dependency brings langsmith any more")
    project.write(line("one"))
    hints = [
        [text for text in run.lines("opsagent: ") if "add `-p no:langsmith_plugin` to addopts" in text]
        for run in (project.start("--collect-only", quiet=("-p", "no:asyncio")), project.run("--collect-only"))
    ]
    assert [len(found) for found in hints] == [1, 0]


def test_marks_that_a_conftest_adds_do_what_they_do_elsewhere(project: Project) -> None:
    project.write(line("fine"), wrong("known"), line("out"))
    project.file(
        "conftest.py",
        "import pytest\n\n"
        "def pytest_collection_modifyitems(items):\n"
        "    for item in items:\n"
        "        if item.name == 'known':\n"
        "            item.add_marker(pytest.mark.xfail(reason='known', strict=True))\n"
        "        if item.name == 'out':\n"
        "            item.add_marker(pytest.mark.skip(reason='not here'))\n",
    )
    run = project.run("-rxs")
    assert (run.code, run.counts) == (0, {"passed": 1, "skipped": 1, "xfailed": 1})
    assert run.lines("mock: ") == ["mock: 3 scenarios: 1 passed, 2 skipped; 3 calls, 0 denied"]
