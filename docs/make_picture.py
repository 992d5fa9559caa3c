"""Makes docs/report.png by hand, with chromium: `make eval && .venv/bin/python docs/make_picture.py`."""

import base64
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from browser import open_browser  # noqa: E402

ROW = 'tbody[id="scenarios/scenarios.jsonl::guardrail"]'
WIDTH, MARGIN = 1200, 12
EDGES = """
const timeline = document.querySelector(arguments[0] + " .ops-timeline");
const top = timeline.previousElementSibling.getBoundingClientRect().top + scrollY;
return [top, timeline.getBoundingClientRect().bottom + scrollY];
"""


def main() -> None:
    """Open the row of the guardrail scenario and take its timeline, with four denials."""
    with open_browser(WIDTH) as browser:
        browser.open(ROOT / "report.html")
        browser.click(f"{ROW} td.col-testId")
        top, bottom = browser.run(EDGES, ROW)
        clip = {"x": 0, "y": top - MARGIN, "width": WIDTH, "height": bottom - top + 2 * MARGIN, "scale": 1}
        how = {"format": "png", "captureBeyondViewport": True, "clip": clip}
        shot = browser._devtools("Page.captureScreenshot", how)
    (ROOT / "docs/report.png").write_bytes(base64.b64decode(shot["data"]))


if __name__ == "__main__":
    main()
