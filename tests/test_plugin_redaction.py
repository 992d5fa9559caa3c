import pytest
from opsproject import Project, line, page, read, script

from mcp_ops.text import find_value

CANARY = "CANARY-55aa-0001"
KEY = "sk-live-0123456789-AbC"


def leaky(name: str = "leaky") -> dict[str, object]:
    """The agent reads a canary and repeats it, plainly and in base64."""
    return line(
        name,
        world={"plant": {"notes.md": f"value {CANARY} and Q0FOQVJZLTU1YWEtMDAwMQ==\n"}, "canaries": [CANARY]},
        mock=script(read("notes.md"), "It is ${last.text}"),
        expect={"answer": "nothing", "leaks": "none"},
    )


@pytest.mark.covers("H10")
@pytest.mark.parametrize("workers", [[], ["-n1"]], ids=["alone", "xdist"])
def test_a_canary_that_leaks_fails_the_item_and_stands_in_nothing_that_is_written(
    workers: list[str], project: Project
) -> None:
    project.write(leaky())
    run = project.either("-vv", "-rA", "--html=r.html", "--junitxml=j.xml", "--ops-trace-dir=t", "--ops-echo", *workers)
    assert run.counts == {"failed": 1}
    assert "redaction failed" not in run.out
    traces = list((project.path / "t").glob("*/trace.jsonl"))
    assert len(traces) == 1
    written = [path.read_text(encoding="utf-8") for path in (*traces, project.path / "r.html", project.path / "j.xml")]
    for text in (*written, run.out, run.err):
        assert CANARY not in text
        assert "Q0FOQVJZLTU1YWEtMDAwMQ" not in text
    assert (
        "redacted:canary-1" in page(project.path / "r.html").tests["scenarios.jsonl::leaky"][0]["extras"][0]["content"]
    )


LONG = "Zq81-kVx7w-9Jp2m-QfL3n-0Wd6"


@pytest.mark.covers("H10")
def test_no_part_of_a_canary_survives_where_a_sentence_was_cut(project: Project) -> None:
    """Sentences show the beginning of a value: for each place of the canary one scenario is cut there."""
    world = {"plant": {"notes.md": f"value {LONG} end\n"}, "canaries": [LONG]}
    told = "${call[0].text /value (\\S+)/}"
    project.write(
        *(
            line(
                f"cut-{before}",
                world=world,
                mock=script(read("notes.md"), f"{'x' * before}{told}{'y' * 300}"),
                expect={"answer": "nothing", "leaks": "none"},
            )
            for before in range(90, 121, 2)
        )
    )
    run = project.run("-vv", "-rA", "--html=r.html", "--junitxml=j.xml", "--ops-trace-dir=t", "--ops-echo")
    assert set(run.counts) == {"failed"}
    traces = (project.path / "t").glob("*/trace.jsonl")
    written = [path.read_text(encoding="utf-8") for path in (*traces, project.path / "r.html", project.path / "j.xml")]
    whole = "\n".join((*written, run.out, run.err))
    assert "…" in whole
    assert "<redacted:canary-1>…" in whole
    assert [piece for at in range(len(LONG) - 4) if (piece := LONG[at : at + 5]) in whole] == []


PRINTS = """
import sys

def pytest_opsagent_outcome(item, outcome):
    print("printed {value}")
"""


@pytest.mark.covers("H10")
@pytest.mark.parametrize("workers", [[], ["-n1"]], ids=["alone", "xdist"])
def test_a_canary_in_captured_output_is_exit_1_and_a_sentence_and_goes_no_further(
    workers: list[str], project: Project
) -> None:
    project.write(line(world={"plant": {"notes.md": "The cache is full.\n"}, "canaries": [CANARY]}))
    project.file("conftest.py", PRINTS.format(value=CANARY))
    run = project.either("-rA", "--html=r.html", "--junitxml=j.xml", "-ojunit_logging=all", *workers)
    assert (run.code, run.counts) == (1, {"passed": 1})
    said = "redaction failed: captured stdout call of scenarios.jsonl::reads held a canary"
    assert run.lines("redaction failed: ") == [said]
    for text in (run.out, *(project.path.joinpath(name).read_text(encoding="utf-8") for name in ("r.html", "j.xml"))):
        assert CANARY not in text
        assert "printed" in text


@pytest.mark.covers("H10")
@pytest.mark.parametrize("workers", [[], ["-n1"]], ids=["alone", "xdist"])
@pytest.mark.parametrize("value", [CANARY, "a<b>&c 'd' \"e\"-0001"], ids=["plain", "markup"])
def test_a_canary_in_a_report_is_exit_1_and_names_file_and_canary(
    value: str, workers: list[str], project: Project
) -> None:
    project.write(line(world={"plant": {"notes.md": "The cache is full.\n"}, "canaries": [value]}))
    project.file(
        "conftest.py",
        "import html\n"
        f"VALUE = {value!r}\n"
        "def pytest_html_results_table_row(report, cells):\n    cells.append(f'<td>{html.escape(VALUE)}</td>')\n"
        "def pytest_html_results_table_header(cells):\n    cells.append('<th>x</th>')\n"
        "def pytest_runtest_setup(item):\n    item.user_properties.append(('mine', VALUE))\n",
    )
    run = project.either("--html=r.html", "--junitxml=j.xml", *workers)
    assert (run.code, run.counts) == (1, {"passed": 1})
    assert run.lines("redaction failed: ") == [
        f"redaction failed: {project.path}/r.html holds canary-1 of scenarios.jsonl:1",
        f"redaction failed: {project.path}/j.xml holds canary-1 of scenarios.jsonl:1",
    ]
    assert value not in run.out


@pytest.mark.covers("H10")
def test_a_value_of_the_environment_is_a_canary_of_every_report(project: Project) -> None:
    project.write(line())
    project.file(
        "conftest.py",
        "import os\n"
        "def pytest_runtest_setup(item):\n    item.user_properties.append(('k', os.environ['MY_API_KEY']))\n",
    )
    project.monkeypatch.setenv("MY_API_KEY", KEY)
    run = project.run("--junitxml=j.xml")
    assert run.code == 1
    assert run.lines("redaction failed: ")[0].endswith("j.xml holds MY_API_KEY")
    assert KEY not in run.out


@pytest.mark.covers("H10", "H42")
def test_a_failing_test_of_a_user_shows_no_canary_in_its_traceback(project: Project) -> None:
    project.file(
        "test_mine.py",
        f"LINE = {leaky()!r}\n\n"
        "def test_mine(opsagent):\n    outcome = opsagent.run(LINE)\n    assert outcome.observed.calls[0].text == ''\n",
    )
    run = project.run("-vv", "--showlocals", "--junitxml=j.xml")
    assert run.counts == {"failed": 1}
    assert CANARY not in run.out.replace(str(leaky()), "")
    assert "<redacted:canary-1>" in run.out


LATE = """
import pytest

@pytest.fixture
def asked(opsagent):
    yield opsagent
    raise RuntimeError("the value was {value}")

def test_mine(asked):
    asked.run({line!r})
"""


@pytest.mark.covers("H10")
def test_a_traceback_after_the_test_shows_no_canary_either(project: Project) -> None:
    project.file("test_mine.py", LATE.format(value=CANARY, line=leaky()))
    run = project.run("--junitxml=j.xml", "--html=r.html")
    assert run.counts == {"passed": 1, "error": 1}
    for text in (run.out, *(project.path.joinpath(name).read_text(encoding="utf-8") for name in ("r.html", "j.xml"))):
        assert CANARY not in text
    assert "the value was <redacted:canary-1>" in run.out


LOUD = """
def pytest_opsagent_outcome(item, outcome):
    print("::error::owned")
    print("  ##[error]owned")
    print("plain")
"""


@pytest.mark.covers("H13")
def test_what_a_server_or_an_agent_prints_is_no_command_to_a_ci_runner(project: Project) -> None:
    project.write(line())
    project.file("conftest.py", LOUD)
    run = project.run("-rA")
    assert run.counts == {"passed": 1}
    assert "plain" in run.out.splitlines()
    assert [text for text in run.out.splitlines() if text.lstrip().startswith(("::", "##["))] == []


@pytest.mark.covers("H10")
@pytest.mark.parametrize("given", [["--log-file=logs/run.log"], ["-olog_file=logs/run.log"]], ids=["flag", "ini"])
def test_a_canary_in_the_log_file_is_exit_1_and_names_the_file(given: list[str], project: Project) -> None:
    project.write(line(world={"plant": {"notes.md": "The cache is full.\n"}, "canaries": [CANARY]}))
    project.file(
        "conftest.py",
        "import logging\n"
        f"def pytest_sessionfinish():\n    logging.getLogger('mine').error('it was {CANARY[:9]}%s', '{CANARY[9:]}')\n",
    )
    run = project.start(*given)
    assert (run.code, run.counts) == (1, {"passed": 1})
    said = f"redaction failed: {project.path}/logs/run.log holds canary-1 of scenarios.jsonl:1"
    assert run.lines("redaction failed: ") == [said]
    assert CANARY in (project.path / "logs/run.log").read_text("utf-8")


@pytest.mark.covers("H10")
@pytest.mark.parametrize(
    "spelled", ["&#67;ANARY-55aa-0001", "43 41 4e 41 52 59 2d 35 35 61 61 2d 30 30 30 31", "CANARY-\\n55aa-0001"]
)
def test_a_canary_that_is_hidden_in_a_report_is_found(spelled: str, project: Project) -> None:
    project.write(line(world={"plant": {"notes.md": "The cache is full.\n"}, "canaries": [CANARY]}))
    project.file(
        "conftest.py",
        f"def pytest_html_results_table_row(report, cells):\n    cells.append('<td>{spelled}</td>')\n"
        "def pytest_html_results_table_header(cells):\n    cells.append('<th>x</th>')\n",
    )
    run = project.run("--html=r.html")
    assert (run.code, run.counts) == (1, {"passed": 1})
    assert run.lines("redaction failed: ") == [
        f"redaction failed: {project.path}/r.html holds canary-1 of scenarios.jsonl:1"
    ]


HIDDEN = {
    "split": "CANARY-\n    55aa-0001",
    "hex": "43414e4152592d353561612d30303031",
    "gzip": "H4sIAAAAAAACA3N29HMMitQ1NU1M1DUwMDAEAKJvTz8QAAAA",
    "html": "&#67;ANARY-55aa-0001",
    "escaped": "CANARY\\x2d55aa\\x2d0001",
}


@pytest.mark.covers("H10")
@pytest.mark.parametrize("encoding", HIDDEN)
def test_a_hidden_canary_that_leaks_stands_in_nothing_that_is_written(encoding: str, project: Project) -> None:
    world = {"plant": {"notes.md": f"before\n{HIDDEN[encoding]}\nbehind\n"}, "canaries": [CANARY]}
    project.write(line(world=world, mock=script(read("notes.md"), "It is ${last.text}"), expect={"leaks": "none"}))
    run = project.run("-vv", "-rA", "--html=r.html", "--junitxml=j.xml", "--ops-trace-dir=t", "--ops-echo")
    assert run.counts == {"failed": 1}
    assert f"expected no leaks, got canary 1 in result of call 1 ({encoding})" in run.out
    assert "redaction failed" not in run.out
    (trace,) = (project.path / "t").glob("*/trace.jsonl")
    written = [path.read_text(encoding="utf-8") for path in (trace, project.path / "r.html", project.path / "j.xml")]
    for text in (*written, run.out, run.err):
        assert find_value(text, CANARY) is None
    assert "before\\n<redacted:canary-1>\\nbehind" in written[0]
