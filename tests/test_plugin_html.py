import html
import json
import re
from html.parser import HTMLParser

import pytest
from opsproject import HOSTILE, Project, denied, line, needy, page, read, script, wrong

COLUMNS = ["Result", "Test", "Duration", "Mode", "Calls", "Denials", "Tokens", "Cost", "Links"]


def cells(row: dict[str, list[str]]) -> list[str]:
    return [re.sub("<[^>]*>", "", cell) for cell in row["resultsTableRow"]]


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


@pytest.mark.covers("H11")
@pytest.mark.parametrize(
    "args",
    [["--self-contained-html"], [], ["-ogenerate_report_on_test=true"], ["-n1"]],
    ids=["one-file", "with-assets", "each-time", "xdist"],
)
def test_the_trace_and_the_columns_are_in_the_row(args: list[str], project: Project) -> None:
    project.file("test_other.py", "def test_other():\n    pass\n")
    project.write(line("reads"), denied("guardrail"), wrong("wrong"), needy("needy"), line("bad", tsak=""))
    run = project.either("--html=out/r.html", *args)
    assert run.counts == {"passed": 3, "failed": 2, "skipped": 1}
    report = page(project.path / "out/r.html")
    assert report.headers == COLUMNS
    rows = {nodeid.partition("::")[2]: tests[0] for nodeid, tests in report.tests.items()}
    assert {name: cells(row)[3:8] for name, row in rows.items()} == {
        "reads": ["mock", "1", "0", "", ""],
        "guardrail": ["mock", "1", "1", "", ""],
        "wrong": ["mock", "2", "0", "", ""],
        "needy": ["mock", "", "", "", ""],
        "bad": ["mock", "", "", "", ""],
        "test_other": ["", "", "", "", ""],
    }
    assert {name: len(row["extras"]) for name, row in rows.items()} == {
        "reads": 1, "guardrail": 1, "wrong": 2, "needy": 0, "bad": 0, "test_other": 0,
    }  # fmt: skip
    assert "GUARD DENIED" in rows["guardrail"]["extras"][0]["content"]
    assert "expected call 2 kubectl_logs" in rows["wrong"]["extras"][0]["content"]
    assert rows["needy"]["log"] == "scenarios.jsonl:4: not proven: needs cluster\n"
    assert "expected call 2 kubectl_logs" in rows["wrong"]["log"]
    assert "NOT PROVEN: 1 scenario (cluster 1)" in report.text
    assert (project.path / "out/assets").is_dir() is ("--self-contained-html" not in args)


@pytest.mark.covers("H11", "H30")
def test_a_report_without_scenarios_has_no_columns_of_ours(project: Project) -> None:
    project.file("test_other.py", "def test_other():\n    pass\n")
    project.run("--html=r.html")
    report = page(project.path / "r.html")
    assert report.headers == ["Result", "Test", "Duration", "Links"]
    assert "opsagent-" not in report.text


@pytest.mark.covers("H11")
def test_columns_stand_under_their_heads_beside_those_of_a_conftest(project: Project) -> None:
    project.file(
        "conftest.py",
        "def pytest_html_results_table_header(cells):\n    cells.insert(1, '<th>Mine</th>')\n    cells.pop()\n"
        "def pytest_html_results_table_row(report, cells):\n    cells.insert(1, '<td>mine</td>')\n    cells.pop()\n",
    )
    project.file("a/test_other.py", "def test_other():\n    pass\n")
    project.write(line("reads"))
    project.run("--html=r.html", "a", "scenarios.jsonl")
    report = page(project.path / "r.html")
    assert report.headers == ["Result", "Mine", "Test", "Mode", "Calls", "Denials", "Tokens", "Cost", "Duration"]
    for tests in report.tests.values():
        assert len(tests[0]["resultsTableRow"]) == len(report.headers)
        assert 'opsagent-mode"' in tests[0]["resultsTableRow"][3]


@pytest.mark.covers("H11", "A26")
def test_hostile_text_in_every_field_stays_text(project: Project) -> None:
    hostile = HOSTILE.replace("\ud800", "").replace("\x00", "")
    name = "<img src=x onerror=alert(1)>.scenarios.jsonl"
    project.write(
        line(
            "hostile",
            title=hostile,
            task=hostile,
            world={"plant": {"notes.md": hostile}},
            mock=script(read("notes.md"), read(hostile), {"tool": hostile, "args": {hostile: hostile}}, hostile),
            expect={"answer": "nothing"},
        ),
        name=name,
    )
    project.file(
        "conftest.py",
        f"def pytest_opsagent_report_sections(item, outcome):\n    return [({hostile!r}, {hostile!r})]\n",
    )
    run = project.run("--html=r.html", "--self-contained-html")
    assert run.counts == {"failed": 1}
    report = page(project.path / "r.html")
    (row,) = next(iter(report.tests.values()))
    assert [extra["format_type"] for extra in row["extras"]] == ["html", "html", "html"]
    for text in [*row["resultsTableRow"], *(extra["content"] for extra in row["extras"])]:
        for tag, attributes in Tags(text).found:
            assert tag not in ("script", "img", "a", "iframe", "object", "link", "base", "meta", "form"), text
            assert not [key for key in attributes if key.startswith("on") or key in ("src", "href", "style", "id")]
        assert not set("\x1b\x00\x07\u202e") & set(text)
    assert "alert(1)" in html.unescape(row["extras"][1]["content"])
    assert json.dumps(row)


@pytest.mark.covers("H11")
def test_a_backslash_in_a_node_id_does_not_end_the_session(project: Project) -> None:
    project.write(line("reads"), name="a\\x.scenarios.jsonl")
    run = project.run("--html=r.html")
    assert (run.code, run.counts) == (0, {"passed": 1})
    assert "INTERNALERROR" not in run.out


@pytest.mark.covers("H17")
def test_sections_of_users_are_added_to_the_row(project: Project) -> None:
    project.write(line("reads"))
    project.file(
        "conftest.py",
        "def pytest_opsagent_report_sections(item, outcome):\n"
        "    yield f'{item.name} <b>', f'{len(outcome.observed.calls)} call'\n",
    )
    project.run("--html=r.html")
    extras = page(project.path / "r.html").tests["scenarios.jsonl::reads"][0]["extras"]
    assert extras[1]["content"] == "<details><summary>reads &lt;b&gt;</summary><pre>1 call</pre></details>"
