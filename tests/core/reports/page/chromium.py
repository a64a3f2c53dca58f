"""A real headless Chromium, driven over WebDriver with nothing but the standard library: clicks, keys, logs."""

import base64
import json
import re
import subprocess
import urllib.request
from dataclasses import dataclass
from typing import Any

FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
LOGS = {"browser": "ALL", "performance": "ALL"}
KEYS = {"ArrowLeft": "\ue012", "ArrowRight": "\ue014", "Escape": "\ue00c", "Tab": "\ue004", "Enter": "\ue007"}
NODE = "element-6066-11e4-a52e-4f735466cecf"


@dataclass
class Browser:
    """A session of a chromedriver that we started."""

    driver: "subprocess.Popen[str]"
    root: str

    def call(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.root}{path}", data, method=method)  # noqa: S310 - our own driver
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
            return json.load(answer)["value"]

    def devtools(self, command: str, **parameters: Any) -> Any:
        return self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def open(self, url: str) -> None:
        """Load the page anew, also when only the fragment differs."""
        self.call("POST", "/url", {"url": "about:blank"})
        for log in LOGS:
            self.log(log)
        self.call("POST", "/url", {"url": url})

    def ask(self, expression: str, *arguments: Any) -> Any:
        return self.call("POST", "/execute/sync", {"script": f"return {expression}", "args": list(arguments)})

    def click(self, selector: str) -> None:
        found = self.call("POST", "/element", {"using": "css selector", "value": selector})
        self.call("POST", f"/element/{found[NODE]}/click", {})

    def press(self, *keys: str) -> None:
        typed = [KEYS.get(key, key) for key in keys]
        actions = [{"type": kind, "value": key} for key in typed for kind in ("keyDown", "keyUp")]
        self.call("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def log(self, kind: str) -> list[dict[str, Any]]:
        return list(self.call("POST", "/se/log", {"type": kind}))

    def requests(self) -> list[str]:
        """The URLs that the page asked for since it was opened."""
        events = [json.loads(entry["message"])["message"] for entry in self.log("performance")]
        return [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]

    def look(self, width: int = 1200, height: int = 900, scheme: str = "light", media: str = "") -> None:
        self.devtools(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.devtools("Emulation.setEmulatedMedia", media=media, features=features)

    def picture(self) -> bytes:
        return base64.b64decode(self.call("GET", "/screenshot"))

    def close(self) -> None:
        try:
            self.call("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait(10)
            if self.driver.stdout is not None:
                self.driver.stdout.close()


def start(chromedriver: str) -> Browser:
    """Start a driver on a free port, and a browser."""
    driver = subprocess.Popen([chromedriver, "--port=0"], stdout=subprocess.PIPE, text=True)
    assert driver.stdout is not None
    port = next(found[1] for line in driver.stdout if (found := re.search(r"successfully on port (\d+)", line)))
    browser = Browser(driver, f"http://127.0.0.1:{port}")
    options = {"goog:chromeOptions": {"args": FLAGS}, "goog:loggingPrefs": LOGS}
    session = browser.call("POST", "/session", {"capabilities": {"alwaysMatch": options}})
    browser.root += f"/session/{session['sessionId']}"
    return browser
