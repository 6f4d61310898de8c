"""A headless Chromium over its debugging pipe: pages are opened, looked at and used as a reader would.

Every request that a page makes is refused and noted, and so is what it writes to its console.
"""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
WAIT_S = 30


def needs_chromium():
    """Return the path of Chromium, or skip the test."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("needs chromium (apt-get install chromium)")
    return found


class Page:
    """One page in one browser; a context manager."""

    def __init__(self, path, *, width=1280, height=900, dark=False, script=True, media="", colors=""):
        self.requests, self.console = [], []
        self._path, self._number, self._waiting = Path(path), 0, b""
        self._size, self._script = (width, height), script
        self._features = [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "forced-colors", "value": colors or "none"},
        ]
        self._media = media

    def __enter__(self):
        command = needs_chromium()
        self._folder = tempfile.mkdtemp(prefix="prony-browser-")
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()

        def places():
            # Chromium reads commands from descriptor 3 and answers on 4; either may be a pipe's own number.
            ends = os.dup(to_browser), os.dup(from_browser)
            high = [os.dup2(end, 900 + k) for k, end in enumerate(ends)]
            for end, place in zip(high, (3, 4), strict=True):
                os.dup2(end, place)

        self._process = subprocess.Popen(
            [
                *(command, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
                *("--remote-debugging-pipe", f"--user-data-dir={self._folder}", "--no-first-run"),
                *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
                "about:blank",
            ],
            close_fds=False,
            preexec_fn=places,  # noqa: PLW1509 - nothing else runs meanwhile
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        if not self._script:
            self.call("Emulation.setScriptExecutionDisabled", value=True)
        self.resize(*self._size)
        self.call("Emulation.setEmulatedMedia", media=self._media, features=self._features)
        self._loaded = False
        self.call("Page.navigate", url=self._path.resolve().as_uri())
        until = time.monotonic() + WAIT_S
        while not self._loaded and time.monotonic() < until:
            self._read(until)
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()
        os.close(self._out)
        os.close(self._in)
        shutil.rmtree(self._folder, ignore_errors=True)

    def resize(self, width, height):
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def call(self, method, **params):
        """Send a command and return its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        own, until = self._number, time.monotonic() + WAIT_S
        while True:
            found = self._read(until)
            if found.get("id") == own:
                assert "error" not in found, found["error"]
                return found["result"]

    def _read(self, until):
        while b"\0" not in self._waiting:
            ready, _, _ = select.select([self._in], [], [], max(0.0, until - time.monotonic()))
            assert ready, "the browser does not answer"
            read = os.read(self._in, 1 << 20)
            assert read, "the browser has ended"
            self._waiting += read
        message, _, self._waiting = self._waiting.partition(b"\0")
        found = json.loads(message)
        self._note(found.get("method"), found.get("params", {}))
        return found

    def _note(self, method, params):
        match method:
            case "Page.loadEventFired":
                self._loaded = True
            case "Network.requestWillBeSent" if params["request"]["url"] != self._path.resolve().as_uri():
                self.requests.append(params["request"]["url"])
            case "Runtime.consoleAPICalled" if params["type"] in ("error", "warning", "assert"):
                self.console.append(str(params["args"]))
            case "Runtime.exceptionThrown":
                self.console.append(str(params["exceptionDetails"]))
            case "Log.entryAdded":
                self.console.append(params["entry"]["text"])

    def value(self, expression):
        """Return the value of a JavaScript expression, awaited."""
        found = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def until(self, expression):
        """Wait until a JavaScript expression is true."""
        end = time.monotonic() + WAIT_S
        while not self.value(expression):
            assert time.monotonic() < end, f"never: {expression}"
            time.sleep(0.05)

    def wake(self, figure):
        """Bring a chart into view and wait until it answers. ``figure``: a selector."""
        element = f"document.querySelector({figure!r})"
        self.value(f"{element}.scrollIntoView({{block: 'center'}})")
        self.value(f"{element}.dispatchEvent(new Event('pointerenter'))")
        self.until(f"'live' in {element}.dataset")

    def wake_all(self):
        """Wait until every chart answers, also those that are drawn on demand."""
        self.value(
            "document.querySelectorAll('figure').forEach((figure) => {"
            " figure.dispatchEvent(new Event('pointerenter'));"
            " [...figure.querySelectorAll('button')].find((one) => one.textContent === 'Draw')?.click(); })"
        )
        self.until("document.querySelectorAll('figure:not([data-live])').length === 0")

    def middle(self, selector):
        """Return where the middle of an element is in the window."""
        box = f"document.querySelector({selector!r}).getBoundingClientRect()"
        return self.value(f"(({{ x, y, width, height }}) => [x + width / 2, y + height / 2])({box})")

    def move(self, x, y):
        """Move the pointer."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def press(self, key):
        """Press a key."""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    def picture(self, path, *, top=None, height=None):
        """Write a picture of the window, or of the page from ``top`` on."""
        more = {}
        if height:
            clip = {"x": 0, "y": top or 0, "width": self._size[0], "height": height, "scale": 1}
            more = {"clip": clip, "captureBeyondViewport": True}
        data = self.call("Page.captureScreenshot", format="png", **more)["data"]
        Path(path).write_bytes(base64.b64decode(data))

    def printed_pages(self):
        """Return how many pages the printed page has."""
        data = base64.b64decode(self.call("Page.printToPDF", paperWidth=8.27, paperHeight=11.69)["data"])
        return data.count(b"/Type /Page\n") or data.count(b"/Type /Page") - data.count(b"/Type /Pages")
