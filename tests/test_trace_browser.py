"""The page in a real browser."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Browser, open_browser, reason_without_browser
from traces import DENIED_RUN, START, filled_trace, written_run

from mcp_ops.trace.events import LlmResponse, Payload, RunFinish, RunStart, ToolCall, ToolResult
from mcp_ops.trace.html import fragment_style, render_fragment, render_page

REASON = reason_without_browser()
pytestmark = [pytest.mark.browser, pytest.mark.skipif(REASON is not None, reason=f"no browser: {REASON}")]

OWN = "document.title='owned'"
HOSTILE = f"</script></style><img src=x onerror={OWN}><svg onload={OWN}> a\u202eb \ud800 \x00"
UNBROKEN = "x" * 3000

# Returns the text nodes whose contrast with the colour behind them is too low for reading.
LOW_CONTRAST = """
const channel = c => { c /= 255; return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4 };
const luminance = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
const rgb = colour => colour.match(/[\\d.]+/g).map(Number);
const behind = element => {
  for (let at = element; at; at = at.parentElement) {
    const found = rgb(getComputedStyle(at).backgroundColor);
    if (found.length < 4 || found[3] > 0) return found.slice(0, 3);
  }
  return [255, 255, 255];
};
const bad = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const element = walker.currentNode.parentElement;
  if (!walker.currentNode.data.trim() || element.tagName === 'STYLE') continue;
  const [a, b] = [luminance(rgb(getComputedStyle(element).color).slice(0, 3)), luminance(behind(element))];
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (ratio < 4.5) bad.push(ratio.toFixed(2) + ' ' + element.className + ': ' + walker.currentNode.data.slice(0, 40));
}
return bad;
"""


@pytest.fixture(scope="module")
def window() -> Iterator[Browser]:
    with open_browser() as started:
        yield started


@pytest.fixture
def browser(window: Browser) -> Browser:
    window.resize(1280)
    window.prefer("light")
    return window


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """A page of three runs: one with a denial, an effect and a leak, one that is hostile, one with long words."""
    long: tuple[Payload, ...] = (
        RunStart(task=UNBROKEN, scenario="long", mode="live", model=UNBROKEN, max_calls=8, tools=[UNBROKEN]),
        LlmResponse(turn=0, text=UNBROKEN, malformed=UNBROKEN),
        *(call for state in ("failed", "unavailable", "declined") for call in long_call(state)),
        RunFinish(finish="error", error=UNBROKEN, calls=3, turns=1),
    )
    path = tmp_path / "trace.html"
    runs = [written_run(tmp_path), filled_trace(HOSTILE), written_run(tmp_path, long)]
    path.write_text(render_page(runs, title=f"Three runs {HOSTILE}"), encoding="utf-8", errors="strict")
    return path


def long_call(state: str) -> Iterator[Payload]:
    number = ["failed", "unavailable", "declined"].index(state)
    yield ToolCall(call=number, turn=0, tool=UNBROKEN, server="s", args={UNBROKEN: UNBROKEN})
    yield ToolResult.model_validate(
        {"call": number, "tool": UNBROKEN, "server": "s", "state": state, "rule": UNBROKEN, "text": UNBROKEN}
    )


def open_all(browser: Browser) -> None:
    browser.run("for (const each of document.querySelectorAll('details')) each.open = true")


@pytest.mark.covers("A21")
def test_the_page_opens_without_a_console_message_or_a_request_to_anywhere(browser: Browser, page: Path) -> None:
    browser.open(page)
    open_all(browser)
    assert browser.console() == []
    assert browser.requests() == [page.as_uri()]


@pytest.mark.covers("A21", "A26")
def test_hostile_text_makes_no_element_and_runs_nothing(browser: Browser, page: Path) -> None:
    browser.open(page)
    assert browser.count("script, img, svg, iframe, object, embed, link, form, input") == 0
    assert browser.run("return document.title").startswith("Three runs </script></style><img src=x")
    assert browser.run("return document.querySelectorAll('style').length") == 1


@pytest.mark.covers("A21")
def test_the_policy_stops_what_got_in_all_the_same(browser: Browser, page: Path) -> None:
    """The second line of defence, tested by breaking the first."""
    browser.open(page)
    browser.run(
        "document.body.insertAdjacentHTML('beforeend', "
        '\'<img src="http://127.0.0.1:9/x.png"><p id=probe style="color: rgb(1, 2, 3)">x</p>\')'
    )
    assert browser.run("return getComputedStyle(document.getElementById('probe')).color") != "rgb(1, 2, 3)"
    assert any("Content Security Policy" in line for line in browser.console())


@pytest.mark.covers("A21")
def test_a_row_expands_by_click_and_by_keyboard(browser: Browser, page: Path) -> None:
    browser.open(page)
    summary, body = "#run-1 .ops-call-denied > summary", "#run-1 .ops-call-denied .ops-body"
    assert not browser.shown(body)
    browser.click(summary)
    assert browser.shown(body)
    assert "kubectl delete deploy payments-api" in browser.text(body)
    assert "Hint: Use kubectl_get." in browser.text(body)
    browser.click(summary)
    assert not browser.shown(body)
    browser.press(summary, "\ue007")
    assert browser.shown(body)


def test_the_table_of_contents_leads_to_a_run(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.click("nav a", 2)
    assert browser.run("return location.hash") == "#run-3"


@pytest.mark.parametrize("width", [1280, 390])
def test_no_text_however_long_makes_the_page_wider_than_the_window(browser: Browser, page: Path, width: int) -> None:
    browser.resize(width)
    browser.open(page)
    assert browser.page_width() <= width
    open_all(browser)
    assert browser.page_width() <= width


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_can_be_read_in_both_colour_schemes(browser: Browser, page: Path, scheme: str) -> None:
    """WCAG 2.2, 1.4.3: a contrast of at least 4.5 to 1."""
    browser.prefer(scheme)
    browser.open(page)
    open_all(browser)
    background = browser.run("return getComputedStyle(document.body).backgroundColor")
    assert background == {"light": "rgb(255, 255, 255)", "dark": "rgb(18, 21, 27)"}[scheme]
    assert browser.run(LOW_CONTRAST) == []


def test_a_printed_page_shows_what_is_folded_on_the_screen(browser: Browser, page: Path) -> None:
    browser.open(page)
    height = "return document.querySelector('#run-1 .ops-call-denied').getBoundingClientRect().height"
    folded = browser.run(height)
    browser.print_media()
    assert browser.run(height) > 2 * folded


@pytest.mark.covers("H11")
def test_fragments_inserted_into_somebody_else_s_page_keep_their_look_and_expand(
    browser: Browser, tmp_path: Path
) -> None:
    """pytest-html inserts them by `insertAdjacentHTML` below `#results-table td`, once a row."""
    path = tmp_path / "host.html"
    path.write_text(
        "<!DOCTYPE html><meta charset=utf-8><style>body { color: #999; font-size: 12px } p { color: red } "
        f"#results-table td {{ padding: 5px; text-align: left }}</style><style>{fragment_style()}</style>"
        "<table id=results-table><tr><td class=extra></td></tr><tr><td class=extra></td></tr></table>",
        encoding="utf-8",
    )
    browser.open(path)
    for row, trace in enumerate([written_run(tmp_path), filled_trace(HOSTILE)]):
        browser.run(
            "document.querySelectorAll('.extra')[arguments[0]].insertAdjacentHTML('beforeend', arguments[1])",
            row,
            render_fragment(trace),
        )
    assert browser.count("script, img, svg") == 0
    assert browser.count(".ops-trace") == 2
    assert browser.run("return getComputedStyle(document.querySelector('.ops-turn')).color") == "rgb(29, 36, 48)"
    assert not browser.shown(".ops-call-denied .ops-body")
    browser.click(".ops-call-denied > summary")
    assert browser.shown(".ops-call-denied .ops-body")
    assert browser.run(LOW_CONTRAST) == []
    assert browser.console() == []
    assert browser.requests() == [path.as_uri()]


def test_a_fragment_stays_light_on_a_light_page_whatever_the_reader_prefers(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "host.html"
    fragment = render_fragment(written_run(tmp_path, (START, *DENIED_RUN[1:])))
    path.write_text(f"<style>{fragment_style()}</style>{fragment}", encoding="utf-8")
    browser.prefer("dark")
    browser.open(path)
    assert (
        browser.run("return getComputedStyle(document.querySelector('.ops-trace')).backgroundColor")
        == "rgb(255, 255, 255)"
    )
    browser.prefer("light")
