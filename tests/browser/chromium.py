"""A real Chromium without a window, driven through its DevTools protocol.

Knows nothing of the page under test. One task uses a page at a time: while it waits for an answer
it collects what else the browser reports, so nothing runs in the background.
"""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from tests.patience import PATIENCE_S

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-background-timer-throttling",
    "--disable-renderer-backgrounding",
    "--autoplay-policy=no-user-gesture-required",
    "--remote-debugging-port=0",
)
TEXT_OPCODE = 1
"""Of a WebSocket message (RFC 6455 section 11.8)."""


class NoChromium(Exception):
    """There is no browser to test with."""


@dataclass(frozen=True, slots=True)
class WireMessage:
    """One message on a WebSocket of the page."""

    sent: bool
    """By the page; else by the server."""

    at_s: float
    """On the browser's monotonic clock."""

    event: Mapping[str, Any]

    @property
    def type(self) -> str:
        return str(self.event["type"])


@dataclass(slots=True)
class Page:
    """One tab."""

    socket: aiohttp.ClientWebSocketResponse
    session_id: str
    wire: list[WireMessage] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    """Uncaught exceptions and what was logged as an error."""

    offered_protocols: list[str] = field(default_factory=list)
    """Subprotocols of the latest WebSocket handshake."""

    calls: int = 0

    async def call(
        self, method: str, *, timeout_s: float = PATIENCE_S, **params: Any
    ) -> dict[str, Any]:
        """Send one DevTools command and return its result."""
        self.calls += 1
        number = self.calls
        await self.socket.send_json(
            {"id": number, "sessionId": self.session_id, "method": method, "params": params}
        )
        async with asyncio.timeout(timeout_s):
            while True:
                message = json.loads((await self.socket.receive()).data)
                if message.get("id") != number:
                    self._collect(message)
                elif "error" in message:
                    raise AssertionError(f"{method}: {message['error']['message']}")
                else:
                    return dict(message["result"])

    async def evaluate(self, expression: str, timeout_s: float = PATIENCE_S) -> Any:
        """Return the value of a JavaScript expression, awaited, as if a person had caused it."""
        outcome = await self.call(
            "Runtime.evaluate",
            timeout_s=timeout_s,
            expression=expression,
            awaitPromise=True,
            returnByValue=True,
            userGesture=True,
        )
        if "exceptionDetails" in outcome:
            details = outcome["exceptionDetails"]
            raise AssertionError(details.get("exception", {}).get("description", details["text"]))
        return outcome["result"].get("value")

    async def until(self, condition: str, timeout_s: float = PATIENCE_S) -> None:
        """Wait until a JavaScript condition holds, in which something may be awaited."""
        value = await self.evaluate(
            f"""(async () => {{
                const deadline = performance.now() + {1000 * timeout_s};
                while (true) {{
                    const value = ({condition});
                    if (value || performance.now() > deadline) return Boolean(value);
                    await new Promise((resolve) => setTimeout(resolve, 10));
                }}
            }})()""",
            timeout_s + PATIENCE_S,
        )
        if not value:
            state = await self.evaluate("JSON.stringify(document.body.dataset)")
            text = await self.evaluate("document.body.innerText")
            raise AssertionError(
                f"not within {timeout_s} s: {condition}\n"
                f"state: {state}\nerrors: {self.errors}\n{text}"
            )

    async def open(self, url: str) -> None:
        """Go to an address and wait until the page's modules have run."""
        await self.call("Page.navigate", url=url)
        await self.until("document.readyState === 'complete'")

    async def click(self, selector: str) -> None:
        """Click an element that a person can see and use."""
        await self.until(
            f"""(() => {{
                const element = document.querySelector({json.dumps(selector)});
                return element && !element.disabled && element.checkVisibility();
            }})()"""
        )
        await self.evaluate(f"document.querySelector({json.dumps(selector)}).click()")

    async def text(self, selector: str) -> str:
        """Return the text of an element as it is seen."""
        return str(await self.evaluate(f"document.querySelector({json.dumps(selector)}).innerText"))

    async def key(self, kind: str, key: str, code: str) -> None:
        """Press or release a key: ``kind`` is ``keyDown`` or ``keyUp``."""
        text = {"text": key} if kind == "keyDown" and len(key) == 1 else {}
        await self.call("Input.dispatchKeyEvent", type=kind, key=key, code=code, **text)

    async def resize(self, width: int, height: int, scale: float = 1) -> None:
        """Give the page the size of another device."""
        await self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=width < 600,
        )

    async def prefer(self, **features: str) -> None:
        """Set media features, ``prefers_color_scheme="dark"`` for one."""
        named = [{"name": key.replace("_", "-"), "value": value} for key, value in features.items()]
        await self.call("Emulation.setEmulatedMedia", features=named)

    async def screenshot(self) -> bytes:
        """Return what is seen now as PNG."""
        picture = await self.call("Page.captureScreenshot")
        return base64.b64decode(picture["data"])

    async def messages(self) -> list[WireMessage]:
        """Return everything on the wire so far."""
        await self.evaluate("0")  # whatever was reported before the answer to this has arrived
        return self.wire

    def _collect(self, message: Mapping[str, Any]) -> None:
        params = message.get("params", {})
        match message.get("method"):
            case "Network.webSocketFrameSent" | "Network.webSocketFrameReceived" as method:
                if params["response"]["opcode"] != TEXT_OPCODE:
                    return  # a piece of a film
                event = json.loads(params["response"]["payloadData"])
                sent = method == "Network.webSocketFrameSent"
                self.wire.append(WireMessage(sent, params["timestamp"], event))
            case "Network.webSocketWillSendHandshakeRequest":
                headers = {k.lower(): v for k, v in params["request"]["headers"].items()}
                self.offered_protocols = headers.get("sec-websocket-protocol", "").split(", ")
            case "Runtime.exceptionThrown":
                details = params["exceptionDetails"]
                self.errors.append(details.get("exception", {}).get("description", details["text"]))
            case "Runtime.consoleAPICalled" if params["type"] == "error":
                self.errors.append(" ".join(str(arg.get("value")) for arg in params["args"]))
            case "Log.entryAdded" if params["entry"]["level"] == "error":
                entry = params["entry"]
                self.errors.append(f"{entry['text']} {entry.get('url', '')}")


def executable() -> str:
    """Return the path of the browser.

    Raises:
        NoChromium: There is none.
    """
    for name in NAMES:
        if path := shutil.which(name):
            return path
    raise NoChromium(
        "the browser tests need Chromium and found none of "
        f"{', '.join(NAMES)}: run `make browser` as root, or install Chromium by hand"
    )


@asynccontextmanager
async def new_page(
    profile: Path, flags: tuple[str, ...] = (), scripts: tuple[str, ...] = ()
) -> AsyncIterator[Page]:
    """Start a browser with an empty profile and hand out its one tab.

    Args:
        profile: An empty folder.
        flags: More command-line flags.
        scripts: JavaScript that runs in the page before its own; switches the page's
            content security policy off, so that such a script may do what the page may not.
    """
    process = await asyncio.create_subprocess_exec(
        executable(),
        *FLAGS,
        *flags,
        f"--user-data-dir={profile}",
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        address = await _devtools_address(process)
        async with aiohttp.ClientSession() as http, _devtools(http, address) as socket:
            page = await _attach(socket)
            if scripts:
                await page.call("Page.setBypassCSP", enabled=True)
            for script in scripts:
                await page.call("Page.addScriptToEvaluateOnNewDocument", source=script)
            yield page
    finally:
        process.terminate()
        await process.communicate()


def _devtools(http: aiohttp.ClientSession, address: str) -> Any:
    # A screenshot is a large message; the browser answers no pings.
    return http.ws_connect(address, max_msg_size=64 * 1024 * 1024)


async def _devtools_address(process: asyncio.subprocess.Process) -> str:
    assert process.stderr is not None
    said: list[str] = []
    async with asyncio.timeout(PATIENCE_S):
        while line := (await process.stderr.readline()).decode(errors="replace"):
            said.append(line)
            if "DevTools listening on " in line:
                return line.split("DevTools listening on ")[1].strip()
    raise AssertionError("Chromium did not start:\n" + "".join(said))


async def _attach(socket: aiohttp.ClientWebSocketResponse) -> Page:
    browser = Page(socket, "")
    await socket.send_json(
        {"id": 0, "method": "Target.createTarget", "params": {"url": "about:blank"}}
    )
    target = json.loads((await socket.receive()).data)["result"]["targetId"]
    await socket.send_json(
        {
            "id": 0,
            "method": "Target.attachToTarget",
            "params": {"targetId": target, "flatten": True},
        }
    )
    while not browser.session_id:
        message = json.loads((await socket.receive()).data)
        browser.session_id = message.get("params", {}).get("sessionId", "")
    for domain in ("Page", "Runtime", "Network", "Log"):
        await browser.call(f"{domain}.enable")
    return browser
