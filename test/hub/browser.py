"""Chromium without a window, driven by the DevTools protocol through a pipe.

    with Browser(tmp_path, width=400, dark=True) as browser:
        browser.goto("https://...")
        browser.wait("document.querySelector('h1')")

What the page complains of (exceptions, what its policy has blocked) is in browser.complaints.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from lab.support.waiting import PATIENCE, wait_for

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))),
               None)
WHY_NONE = "there is no chromium: apt-get install chromium"
FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
         "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update",
         "--disable-sync", "--disable-extensions", "--ignore-certificate-errors",
         "--hide-scrollbars", "--remote-debugging-pipe"]
ANSWER_S = 20 * PATIENCE
KEYS = {"Enter": 13, "Escape": 27, "Tab": 9, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39,
        "ArrowDown": 40, "Home": 36, "End": 35}


class BrowserError(AssertionError):
    """The browser refuses, or has ended."""


class Browser:
    """A tab of a given width."""

    def __init__(self, folder: Path, width: int = 1300, height: int = 900, dark: bool = False,
                 enter: Callable[[Sequence[str]], list[str]] = list) -> None:
        """`enter` makes the command line that runs one elsewhere, as Namespace.enter()."""
        self.complaints: list[str] = []
        self._next = 0
        self._rest = b""
        self._events: list[dict] = []
        (read_it, self._write), (self._read, write_it) = os.pipe(), os.pipe()
        argv = [PROGRAM, *FLAGS, f"--user-data-dir={folder / 'profile'}", "about:blank"]
        script = f'exec "$@" 3<&{read_it} 4>&{write_it}'
        # Descriptors 3 and 4 may be in use here.
        self._process = subprocess.Popen(
            enter(["bash", "-c", script, "chromium", *argv]), pass_fds=(read_it, write_it),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": str(folder)}, start_new_session=True)
        os.close(read_it)
        os.close(write_it)
        self._session = None
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target,
                                  flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=width < 600)
        self.send("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce"}])

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._session = None
            self.send("Browser.close")
        except (BrowserError, OSError):
            pass
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._write)
        os.close(self._read)

    # ---- the protocol

    def send(self, method: str, **params: object) -> dict:
        self._next += 1
        number = self._next
        message = {"id": number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._write, data):]
        deadline = time.monotonic() + ANSWER_S
        while True:
            answer = self._receive(deadline)
            if answer is None:
                raise BrowserError(f"no answer to {method}")
            if answer.get("id") == number:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def _receive(self, deadline: float) -> dict | None:
        """The next message; events are noted. None: there is none in time."""
        while b"\0" not in self._rest:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._read], [], [], left)[0]:
                return None
            data = os.read(self._read, 1 << 16)
            if not data:
                raise BrowserError("the browser has ended")
            self._rest += data
        text, _, self._rest = self._rest.partition(b"\0")
        message = json.loads(text)
        self._note(message)
        return message

    def _note(self, message: dict) -> None:
        params = message.get("params", {})
        match message.get("method"):
            case "Runtime.exceptionThrown":
                details = params["exceptionDetails"]
                said = details.get("exception", {}).get("description", details["text"])
                self.complaints.append(said)
            case "Log.entryAdded" if params["entry"]["level"] == "error":
                entry = params["entry"]
                self.complaints.append(f"{entry['text']} {entry.get('url', '')}")
            case str():
                self._events.append(message)

    # ---- the page

    def goto(self, url: str) -> None:
        self.send("Page.navigate", url=url)

    def run(self, expression: str) -> object:
        """The value of an expression of the page, or of its promise."""
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in answer:
            raise BrowserError(answer["exceptionDetails"]["exception"].get("description", "?"))
        return answer["result"].get("value")

    def wait(self, expression: str, deadline_s: float = 10) -> object:
        """Until it is something true; the value, or True for an element."""
        guarded = (f"(() => {{ try {{ const v = {expression}; return v instanceof Node || v }} "
                   "catch { return null } })()")
        return wait_for(lambda: self.run(guarded), deadline_s, expression)

    def text(self, selector: str = "body") -> str:
        return self.run(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''")

    def click(self, selector: str) -> None:
        self.run(f"document.querySelector({json.dumps(selector)}).click()")

    def press(self, key: str, shift: bool = False) -> None:
        for kind in ("rawKeyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=key, code=key,
                      windowsVirtualKeyCode=KEYS.get(key, 0), modifiers=8 if shift else 0)
            if kind == "rawKeyDown" and key == "Enter":
                self.send("Input.dispatchKeyEvent", type="char", key=key, text="\r")

    def screenshot(self, path: Path) -> None:
        """All of the page, as far down as it goes, but 3000 px."""
        size = self.send("Page.getLayoutMetrics")["cssContentSize"]
        shot = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip={
            "x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 3000),
            "scale": 1})
        path.write_bytes(base64.b64decode(shot["data"]))

    def sideways(self) -> int:
        """By how many px the page is wider than the window."""
        return self.run("Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)"
                        " - document.documentElement.clientWidth")
