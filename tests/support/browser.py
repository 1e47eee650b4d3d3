"""A headless Chromium with software drawing, spoken to over pipes with the DevTools protocol."""

import base64
import fcntl
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
OPTIONS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--enable-unsafe-swiftshader",
           "--hide-scrollbars", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
           "--disable-component-update", "--remote-debugging-pipe")


class Browser:
    """One page of a browser: what it asked for and what it said is kept in ``requests`` and ``said``."""

    def __init__(self, process: subprocess.Popen, send: int, receive: int) -> None:
        self.process = process
        self._send, self._receive, self._rest, self._last = send, receive, b"", 0
        self._session: str | None = None
        self.requests: list[str] = []
        self.said: list[str] = []

    def ask(self, method: str, **parameters: object) -> dict:
        """One command and its answer. Raises RuntimeError when the browser refuses it."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._send, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._last:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self._note(answer)

    def _next(self) -> dict:
        while b"\0" not in self._rest:
            piece = os.read(self._receive, 1 << 20)
            if not piece:
                raise RuntimeError("the browser has ended")
            self._rest += piece
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)

    def _note(self, event: dict) -> None:
        given = event.get("params", {})
        if event.get("method") == "Network.requestWillBeSent":
            self.requests.append(given["request"]["url"])
        elif event.get("method") == "Runtime.exceptionThrown":
            details = given["exceptionDetails"]
            self.said.append(details.get("exception", {}).get("description", details["text"]))
        elif event.get("method") == "Log.entryAdded" and given["entry"]["level"] in ("error", "warning"):
            self.said.append(given["entry"]["text"])
        elif event.get("method") == "Runtime.consoleAPICalled" and given["type"] in ("error", "warning"):
            self.said.append(" ".join(str(part.get("value", part.get("description"))) for part in given["args"]))

    def attach(self, width: int, height: int) -> None:
        """Open a page of a size in CSS pixels and listen to it."""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log", "Performance"):
            self.ask(f"{domain}.enable")
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def open(self, address: str, ready: str, timeout: float = 60) -> float:
        """Seconds from asking for a page until an expression is true in it."""
        begin = time.perf_counter()
        self.ask("Page.navigate", url=address)
        self.wait(ready, timeout)
        return time.perf_counter() - begin

    def wait(self, expression: str, timeout: float = 60) -> None:
        """Return once an expression is true. Raises TimeoutError, with what the page said, when it does not come."""
        end = time.perf_counter() + timeout
        while not self.value(f"Boolean({expression})"):
            if time.perf_counter() > end:
                raise TimeoutError(f"{expression} did not come true; the page said: {self.said}")
            time.sleep(0.02)

    def value(self, expression: str) -> object:
        """The value of an expression, or of the promise that it is. Raises RuntimeError for what it throws."""
        found = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"].get("exception", {}).get("description", expression))
        return found["result"].get("value")

    def photograph(self, path: str | Path) -> None:
        """Write what is seen as PNG."""
        data = self.ask("Page.captureScreenshot", format="png")["data"]
        Path(path).write_bytes(base64.b64decode(data))

    def mouse(self, kind: str, x: float, y: float, **more: object) -> None:
        """``kind``: Pressed, Moved, Released or Wheel."""
        button = {"button": "left", "clickCount": 1} if kind in ("Pressed", "Released") else {}
        self.ask("Input.dispatchMouseEvent", type=f"mouse{kind}", x=x, y=y, **button, **more)

    def click(self, x: float, y: float) -> None:
        """Press and release the left button."""
        for kind in ("Moved", "Pressed", "Released"):
            self.mouse(kind, x, y)


@contextmanager
def browser(folder: Path, width: int = 1400, height: int = 900, *options: str) -> Iterator[Browser]:
    """A browser with its profile in ``folder``, ended at the end of the block."""
    to_browser, from_us = os.pipe()
    to_us, from_browser = os.pipe()

    # The protocol is spoken on descriptors 3 and 4; the shell sees to it that nothing else is there.
    high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (to_browser, from_browser)]
    command = f'exec 3<&{high[0]} 4>&{high[1]}; exec "$@"'
    process = subprocess.Popen(
        ["bash", "-c", command, "bash", CHROMIUM, *OPTIONS, f"--window-size={width},{height}",
         f"--user-data-dir={folder / 'profile'}", *options, "about:blank"],
        pass_fds=high, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for fd in (to_browser, from_browser, *high):
        os.close(fd)
    try:
        found = Browser(process, from_us, to_us)
        found.attach(width, height)
        yield found
        found.ask("Browser.close")
        process.wait(10)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        os.close(from_us)
        os.close(to_us)
