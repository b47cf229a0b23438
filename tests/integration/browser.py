"""Debian's Chromium without a window, driven by its DevTools protocol over two pipes."""

import base64
import fcntl
import json
import os
import shutil
import subprocess
import threading
from pathlib import Path

LIMIT_SECONDS = 120  # only for hangs


def program():
    found = shutil.which("chromium")
    assert found, "no chromium: install the packages of scripts/packages.txt"
    return found


class Browser:
    """One process with one tab. `problems` collects errors of the console, the network and the content security policy."""

    def __init__(self, home):
        ours_in, its_out = os.pipe()
        its_in, ours_out = os.pipe()
        argv = [program(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
                f"--user-data-dir={home}", "--remote-debugging-pipe", "about:blank"]
        # the browser reads descriptor 3 and writes 4: move our ends above both first
        high_in, high_out = (fcntl.fcntl(end, fcntl.F_DUPFD, 64) for end in (its_in, its_out))

        def place():
            os.dup2(high_in, 3)
            os.dup2(high_out, 4)

        self.process = subprocess.Popen(argv, preexec_fn=place, pass_fds=(3, 4), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        os.close(high_in)
        os.close(high_out)
        os.close(its_in)
        os.close(its_out)
        self.out, self.input = os.fdopen(ours_out, "wb", 0), os.fdopen(ours_in, "rb")
        self.answers, self.events, self.problems, self.requests = {}, [], [], []
        self.changed, self.number, self.session, self.closed = threading.Condition(), 0, None, False
        threading.Thread(target=self._read, daemon=True).start()
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "Accessibility"):
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.session = None
        try:
            self.call("Browser.close")
        except (OSError, AssertionError):
            pass
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.out.close()

    def _read(self):
        text = b""
        while True:
            more = os.read(self.input.fileno(), 1 << 20)
            if not more:
                break
            text += more
            *whole, text = text.split(b"\0")
            with self.changed:
                for each in whole:
                    self._take(json.loads(each))
                self.changed.notify_all()
        with self.changed:
            self.closed = True
            self.changed.notify_all()

    def _take(self, message):
        if "id" in message:
            self.answers[message["id"]] = message
            return
        name, params = message["method"], message["params"]
        self.events.append(name)
        if name == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(params["exceptionDetails"])[:500])
        elif name == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.problems.append(json.dumps(params["args"])[:500])
        elif name == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.problems.append(params["entry"]["text"])
        elif name == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def call(self, method, **params):
        with self.changed:
            self.number += 1
            number = self.number
            message = {"id": number, "method": method, "params": params}
            if self.session:
                message["sessionId"] = self.session
            self.out.write(json.dumps(message).encode() + b"\0")
            done = self.changed.wait_for(lambda: number in self.answers or self.closed, LIMIT_SECONDS)
            assert done and not self.closed, f"chromium did not answer {method}"
            answer = self.answers.pop(number)
        assert "error" not in answer, f"{method}: {answer.get('error')}"
        return answer["result"]

    def wait_event(self, name, after):
        with self.changed:
            assert self.changed.wait_for(lambda: name in self.events[after:] or self.closed, LIMIT_SECONDS), f"waited for {name}"

    def open(self, url):
        self.problems.clear()
        self.requests.clear()
        after = len(self.events)
        answer = self.call("Page.navigate", url=str(url))
        assert "errorText" not in answer, answer
        self.wait_event("Page.loadEventFired", after)

    def run(self, script):
        """The value of an expression; promises are awaited."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait(self, script):
        """Waits until the expression is true; a failure contains the text of the page."""
        return self.run(f"""new Promise((done, fail) => {{
            const limit = performance.now() + {LIMIT_SECONDS / 2} * 1000;
            (function look() {{
                const value = {script};
                if (value) done(value);
                else if (performance.now() > limit) fail(new Error("not so: " + document.body.innerText.slice(0, 1500)));
                else setTimeout(look, 30);
            }})();
        }})""")

    def look(self, width=1280, height=900, dark=False, zoom=1.0, media="screen"):
        """Sets the window's size; `zoom` acts as the browser's own zoom, so the page has width / zoom CSS pixels."""
        self.call("Emulation.setDeviceMetricsOverride", width=round(width / zoom), height=round(height / zoom),
                  deviceScaleFactor=zoom, mobile=False)
        self.call("Emulation.setEmulatedMedia", media=media,
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def key(self, name, code=0):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=name, windowsVirtualKeyCode=code,
                      **({"text": "\r"} if name == "Enter" and kind == "keyDown" else {}))

    def picture(self, path, whole=True):
        """A picture of the whole page, or of what the window shows."""
        if whole:
            return self.clip(path, {**self.size(), "x": 0, "y": 0})
        return self._capture(path)

    def clip(self, path, box):
        """A picture of a part of the page."""
        self._capture(path, captureBeyondViewport=True, clip={**box, "scale": 1})

    def _capture(self, path, **what):
        data = self.call("Page.captureScreenshot", format="png", **what)["data"]
        Path(path).write_bytes(base64.b64decode(data))

    def size(self):
        width, height = self.run("[document.documentElement.clientWidth, document.documentElement.scrollHeight]")
        return {"width": width, "height": height}
