"""A real browser for tests: Debian's chromium, driven by chromedriver over plain WebDriver.

    with open_browser() as browser:
        browser.open(path)
        browser.click("summary")
        assert browser.console() == []
        assert browser.requests() == [path.as_uri()]

`reason_without_browser()` says why there is none, for a skip.
"""

import base64
import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


def reason_without_browser() -> str | None:
    """Return why no browser can be driven on this machine, or None when one can."""
    missing = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    return f"not installed: {', '.join(missing)}" if missing else None


DRIVER_STARTS = 5


@contextmanager
def open_browser(width: int = 1280, height: int = 900) -> Iterator["Browser"]:
    """Start a browser with a window of the given size in CSS pixels, and stop it in the end."""
    with (
        tempfile.TemporaryDirectory(prefix="browser-", ignore_cleanup_errors=True) as profile,
        _driver() as address,
        httpx.Client(base_url=address, timeout=60, trust_env=False) as http,
    ):
        browser = Browser(http, profile)
        try:
            browser.resize(width, height)
            yield browser
        finally:
            browser.quit()


@contextmanager
def _driver() -> Iterator[str]:
    """Start chromedriver and yield its address.

    It picks a port for IPv6 and gives up when the same port is taken for IPv4; then it is asked again.
    """
    for _ in range(DRIVER_STARTS):
        with subprocess.Popen(
            ["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as driver:
            try:
                said = _said_at_start(driver)
                if "started successfully on port" in said[-1]:
                    yield f"http://127.0.0.1:{said[-1].rstrip().rstrip('.').rsplit(' ', 1)[1]}"
                    return
            finally:
                driver.terminate()
        if "port not available" not in said[-1]:
            break
    raise RuntimeError("chromedriver did not start: " + "".join(said))


def _said_at_start(driver: "subprocess.Popen[bytes]") -> list[str]:
    said = [""]
    assert driver.stdout is not None
    for line in driver.stdout:
        said.append(line.decode())
        if "started successfully on port" in said[-1]:
            break
    return said


class Browser:
    """One window. Everything waits until it is done."""

    def __init__(self, http: httpx.Client, profile: str) -> None:
        self._http = http
        always = {
            "browserName": "chrome",
            "goog:chromeOptions": {
                "binary": shutil.which("chromium"),
                "args": [*_FLAGS, f"--user-data-dir={profile}"],
            },
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }
        session = self._send("POST", "/session", {"capabilities": {"alwaysMatch": always}})
        self._session = f"/session/{session['sessionId']}"
        self._requests: list[str] = []

    def open(self, page: Path | str) -> None:
        """Open a file or an address, and forget what was logged before."""
        self.console()
        self.requests()
        self._requests.clear()
        self._post("/url", {"url": page.resolve().as_uri() if isinstance(page, Path) else page})

    def run(self, script: str, *args: object) -> Any:
        """Run JavaScript and return what it returns, although the page itself may forbid scripts."""
        return self._post("/execute/sync", {"script": script, "args": list(args)})

    def click(self, selector: str, nth: int = 0) -> None:
        """Click an element as a person would: it must be there, in view and not covered."""
        self._post(f"/element/{self._find(selector)[nth]}/click", {})

    def press(self, selector: str, keys: str, nth: int = 0) -> None:
        """Type into an element, as from a keyboard."""
        self._post(f"/element/{self._find(selector)[nth]}/value", {"text": keys})

    def count(self, selector: str) -> int:
        """Return how many elements there are."""
        return len(self._find(selector))

    def shown(self, selector: str, nth: int = 0) -> bool:
        """Return whether an element can be seen."""
        return bool(self._send("GET", f"{self._session}/element/{self._find(selector)[nth]}/displayed"))

    def text(self, selector: str, nth: int = 0) -> str:
        """Return the text of an element as it is rendered."""
        return str(self._send("GET", f"{self._session}/element/{self._find(selector)[nth]}/text"))

    def resize(self, width: int, height: int = 900) -> None:
        """Make the page's viewport so many CSS pixels wide and high, as on a telephone or a screen."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self._devtools("Emulation.setDeviceMetricsOverride", metrics)

    def prefer(self, scheme: str) -> None:
        """Show pages on a screen, for a reader who prefers the colour scheme `dark` or `light`."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self._devtools("Emulation.setEmulatedMedia", {"media": "screen", "features": features})

    def print_media(self) -> None:
        """Show pages as they are printed, until `prefer` is called."""
        self._devtools("Emulation.setEmulatedMedia", {"media": "print"})

    def page_width(self) -> int:
        """Return how wide the page's content is; wider than the window means that it scrolls sideways."""
        return int(self.run("return document.documentElement.scrollWidth"))

    def screenshot(self, path: Path) -> Path:
        """Save a picture of the whole page, down to its end."""
        shot = self._devtools("Page.captureScreenshot", {"format": "png", "captureBeyondViewport": True})
        path.write_bytes(base64.b64decode(shot["data"]))
        return path

    def console(self) -> list[str]:
        """Return what was logged to the console since the last look: errors, warnings and blocked loads."""
        return [f"{entry['level']}: {entry['message']}" for entry in self._post("/se/log", {"type": "browser"})]

    def requests(self) -> list[str]:
        """Return every address that the page asked for since it was opened, its own included."""
        for entry in self._post("/se/log", {"type": "performance"}):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                self._requests.append(message["params"]["request"]["url"])
        return list(self._requests)

    def quit(self) -> None:
        """Close the window."""
        self._send("DELETE", self._session)

    def _find(self, selector: str) -> list[str]:
        return [found[_ELEMENT] for found in self._post("/elements", {"using": "css selector", "value": selector})]

    def _devtools(self, command: str, parameters: dict[str, Any]) -> Any:
        return self._post("/goog/cdp/execute", {"cmd": command, "params": parameters})

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        return self._send("POST", self._session + path, body)

    def _send(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        answer = self._http.request(method, path, json=body)
        value = answer.json()["value"]
        if answer.is_error:
            raise RuntimeError(f"{method} {path}: {value['message']}")
        return value
