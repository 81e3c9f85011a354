"""A headless Chromium, driven over WebDriver and its own protocol by a few requests to Debian's chromedriver.

It starts from an empty profile, stays on this machine, and says what it was asked to load and what it complained of.
"""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-extensions", "--disable-dev-shm-usage",
    "--no-default-browser-check", "--force-color-profile=srgb",
)  # fmt: skip
PATIENCE = 60.0
"""Seconds for whatever a browser does."""
KEYS = {"left": "\ue012", "right": "\ue014", "home": "\ue011", "end": "\ue010", "tab": "\ue004", "enter": "\ue007"}


class Chromium:
    """One window."""

    def __init__(self, driver: str, profile: Path) -> None:
        logs = {"browser": "ALL", "performance": "ALL"}
        options = {"args": [*FLAGS, f"--user-data-dir={profile}"]}
        wanted = {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": logs}
        answer = _ask("POST", f"{driver}/session", {"capabilities": {"alwaysMatch": wanted}})
        self._session = f"{driver}/session/{answer['sessionId']}"
        self.open("about:blank")

    def close(self) -> None:
        _ask("DELETE", self._session)

    def open(self, address: str) -> None:
        """Whatever was logged before is forgotten."""
        self.complaints(), self.requests()
        self._post("url", url=address)

    def run(self, script: str, *given: Any) -> Any:
        """The value of a function body."""
        return self._post("execute/sync", script=script, args=list(given))

    def protocol(self, name: str, **parameters: Any) -> Any:
        """A command of Chromium's own protocol."""
        return self._post("goog/cdp/execute", cmd=name, params=parameters)

    def look(self, width: int, height: int = 900, scheme: str = "light", media: str = "", script: bool = True) -> None:
        """As on a screen of this width, in this scheme, or on paper; with or without JavaScript."""
        self.protocol(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.protocol("Emulation.setEmulatedMedia", media=media, features=features)
        self.protocol("Emulation.setScriptExecutionDisabled", value=not script)

    def press(self, *keys: str) -> None:
        """Keys for whatever has the focus."""
        signs = [KEYS.get(key, key) for key in keys]
        actions = [{"type": kind, "value": sign} for sign in signs for kind in ("keyDown", "keyUp")]
        self._post("actions", actions=[{"type": "key", "id": "keyboard", "actions": actions}])

    def wait(self, script: str, *given: Any, patience: float = PATIENCE) -> Any:
        """Until the script gives something."""
        deadline = time.monotonic() + patience
        while not (found := self.run(script, *given)):
            assert time.monotonic() < deadline, f"in {patience:.0f} s this did not become true: {script}"
            time.sleep(0.1)
        return found

    def screenshot(self, path: Path) -> None:
        """The whole page, however long."""
        size = self.protocol("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 8000), "scale": 1}
        taken = self.protocol("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(taken["data"]))

    def pdf(self) -> bytes:
        answer = self.protocol("Page.printToPDF", preferCSSPageSize=True, generateDocumentOutline=True)
        return base64.b64decode(answer["data"])

    def complaints(self) -> list[str]:
        """What the console has said since."""
        return [entry["message"] for entry in self._post("se/log", type="browser") if entry["level"] == "SEVERE"]

    def requests(self) -> list[str]:
        """All that was asked for since, but for the browser's own pages."""
        messages = [json.loads(entry["message"])["message"] for entry in self._post("se/log", type="performance")]
        asked = [one["params"]["request"]["url"] for one in messages if one["method"] == "Network.requestWillBeSent"]
        return [address for address in asked if not address.startswith("chrome:")]

    def _post(self, what: str, **values: Any) -> Any:
        return _ask("POST", f"{self._session}/{what}", values)


@contextmanager
def chromium() -> Iterator[Callable[[], Chromium]]:
    """What makes windows, each with a profile of its own; all are closed at the end."""
    program = shutil.which("chromedriver")
    assert program, "there is no chromedriver; make test-browser says what to install"
    with tempfile.TemporaryDirectory() as folder:
        driver = subprocess.Popen([program, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        windows: list[Chromium] = []
        try:
            address = f"http://127.0.0.1:{_port(driver)}"

            def window() -> Chromium:
                windows.append(Chromium(address, Path(folder) / str(len(windows))))
                return windows[-1]

            yield window
        finally:
            for one in windows:
                one.close()
            driver.terminate()
            driver.wait(PATIENCE)
            assert driver.stdout is not None
            driver.stdout.close()


def _port(driver: subprocess.Popen[str]) -> int:
    assert driver.stdout is not None
    for line in driver.stdout:
        if found := re.search(r"started successfully on port ([0-9]+)", line):
            return int(found[1])
    raise AssertionError("chromedriver did not start")


def _ask(method: str, address: str, values: Any = None) -> Any:
    content = None if values is None else json.dumps(values).encode()
    request = urllib.request.Request(address, content, {"Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.load(answer)["value"]
    except urllib.error.HTTPError as error:
        with error:
            said = json.loads(error.read())["value"]
        raise AssertionError(f"{said['error']}: {said['message'].splitlines()[0]}") from None
