"""The pytest-html report in a real browser."""

from pathlib import Path

import pytest
from browser import open_browser, reason_without_browser
from opsproject import HOSTILE, Project, denied, line, needy, read, script, wrong

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(bool(reason_without_browser()), reason=str(reason_without_browser())),
]


@pytest.fixture
def report(project: Project) -> Path:
    hostile = HOSTILE.replace("\ud800", "").replace("\x00", "")
    project.write(
        line("runbook-lookup"),
        denied("guardrail"),
        wrong("wrong-call"),
        needy("needs-cluster"),
        line("bad-line", tsak="x"),
        line("hostile", world={"plant": {"notes.md": hostile}}, mock=script(read("notes.md"), hostile), expect={}),
    )
    assert project.run("--html=report.html", "--self-contained-html").code == 1
    return project.path / "report.html"


@pytest.mark.covers("H11")
def test_details_expand_by_click_without_console_errors_or_requests(report: Path, tmp_path: Path) -> None:
    with open_browser() as browser:
        browser.open(report)
        assert browser.count("#results-table .results-table-row") == 6
        heads = [browser.text("#results-table-head th", nth) for nth in range(9)]
        assert heads[3:8] == ["Mode", "Calls", "Denials", "Tokens", "Cost"]
        opened = '#results-table [id="scenarios.jsonl::wrong-call"] '
        summaries = opened + ".ops-trace details > summary"
        assert browser.count(summaries) > 0
        first = browser.run(f"return document.querySelector('{summaries}').parentElement.open")
        browser.click(summaries)
        assert browser.run(f"return document.querySelector('{summaries}').parentElement.open") is not first
        assert browser.run("return document.querySelectorAll('.extraHTML script, .extraHTML img').length") == 0
        for width in (1280, 390):
            browser.resize(width)
            browser.screenshot(tmp_path / f"report-{width}.png")
            assert browser.page_width() <= width
        assert browser.console() == []
        assert browser.requests() == [report.as_uri()]
