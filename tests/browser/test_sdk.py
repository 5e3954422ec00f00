"""The browser SDK against the real gateway, over each transport: what a page of others would do."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from duologue.app import App, running_app
from duologue.gateway.settings import GatewaySettings
from duologue.gateway.webrtc.settings import WebRtcSettings
from tests.browser import speaker_tap
from tests.browser.chromium import Page
from tests.browser.conftest import Browse
from tests.browser.voice import Pcm, silence
from tests.conformance.talking_gateway import API_KEY, talking_settings
from tests.faults.scripted_models import beeps
from tests.patience import PATIENCE_S

FLAGS = ("--allow-loopback-in-peer-connection",)
NO_UDP = ("--webrtc-ip-handling-policy=disable_non_proxied_udp",)

EAR = """
(() => {
  const Peer = window.RTCPeerConnection;
  window.RTCPeerConnection = class extends Peer {
    constructor(...options) {
      super(...options);
      window.peer = this;
      this.addEventListener('track', ({ track }) => {
        const context = new AudioContext();
        window.ear = context.createAnalyser();
        ear.fftSize = 2048;
        context.createMediaStreamSource(new MediaStream([track])).connect(ear);
      });
    }
  };
})();
"""
"""Listens to the track itself, beside the SDK."""

LOUDNESS = """
(() => {
  const samples = new Float32Array(ear.fftSize);
  ear.getFloatTimeDomainData(samples);
  return Math.max(...samples.map(Math.abs));
})()
"""

SENT_ENERGY = """
(async () => {
  const energy = async () => [...(await peer.getStats()).values()]
    .find(({ type }) => type === 'media-source').totalAudioEnergy;
  const before = await energy();
  await new Promise((resolve) => setTimeout(resolve, 600));
  return (await energy()) - before;
})()
"""
"""How much sound has gone into the peer connection within a moment, as the browser counts it."""

SOUND = 1e-3

ERRORS = """
seen.event.filter(
  ({ type, error }) => type === "error" && error.code !== "response_cancel_not_active")
"""
"""Whoever interrupts may cross the end of what he interrupts: that is nobody's fault."""

SECRET = """
fetch('/v1/realtime/client_secrets', {
  method: 'POST', headers: { Authorization: 'Bearer %s' }, body: '{}',
}).then((answer) => answer.json()).then(({ value }) => value)
"""

START = """
(async () => {
  const { DuologueCall } = await import('/sdk/duologue.js');
  window.seen = { problem: [], notice: [], tool: [], latency: [], cut: [], event: [] };
  window.call = new DuologueCall({
    url: '/v1',
    key: () => SECRET,
    microphone: { echoCancellation: false, noiseSuppression: false, autoGainControl: false },
    tools: {
      weather: {
        description: 'Tell the weather.',
        parameters: { type: 'object', properties: { what: { type: 'string' } } },
        run: ({ what }) => `sun over ${what}`,
      },
    },
    ...OPTIONS.call,
  });
  for (const [kind, list] of Object.entries(seen)) call.on(kind, (detail) => list.push(detail));
  window.loudest = { you: 0, duologue: 0 };
  call.on('level', ({ side, level }) => (loudest[side] = Math.max(loudest[side], level)));
  try {
    await call.start({ withMicrophone: !OPTIONS.isDeaf });
    return call.transport;
  } catch (error) {
    return error.message;
  }
})()
"""


def said(words: str) -> Pcm:
    return np.frombuffer(beeps(words), dtype=np.int16)


def start(*, is_deaf: bool = False, **options: Any) -> str:
    script = START.replace("SECRET", SECRET % API_KEY)
    return script.replace("OPTIONS", f"({json.dumps({'isDeaf': is_deaf, 'call': options})})")


def blank(app: App) -> str:
    """A page of the gateway that does nothing by itself."""
    return f"{app.url}/sdk/duologue.d.ts"


def complaints(page: Page) -> list[str]:
    """What the browser complains of; that there is no picture for the tab does not count."""
    return [error for error in page.errors if "favicon" not in error]


def line(text: str, state: str) -> str:
    """A condition: this was said, or heard."""
    return (
        f"call.transcript.entries.some((entry) => entry.text.trim() === {json.dumps(text)}"
        f" && entry.state === '{state}')"
    )


@pytest.fixture
async def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[App]:
    monkeypatch.syspath_prepend(tmp_path)
    door = GatewaySettings(api_keys=(API_KEY,), webrtc=WebRtcSettings(bind_address="127.0.0.1"))
    async with running_app(talking_settings(tmp_path, gateway=door)) as app:
        yield app
        await app.sessions.wait_empty(PATIENCE_S)
        assert len(app.sessions) == 0


async def last_answer(page: Page) -> Any:
    answers = "call.transcript.entries.filter(({ speaker }) => speaker === 'duologue')"
    return await page.evaluate(f"({{ ...{answers}.at(-1) }})")


ROUTES = [
    pytest.param({"transport": "websocket"}, id="websocket"),
    pytest.param({"transport": "websocket", "dialect": "duplex"}, id="duplex"),
    pytest.param({"transport": "webrtc", "fallback": False}, id="webrtc"),
]


@pytest.mark.parametrize("options", ROUTES)
async def test_a_person_asks_is_answered_and_cuts_in(
    browse: Browse, app: App, options: dict[str, Any]
) -> None:
    microphone = (silence(1.5), said("hello again"), silence(4))
    microphone += (said("hello long"), silence(2), said("hello again"), silence(30))
    scripts = (speaker_tap.SCRIPT, EAR)
    async with browse(microphone, flags=FLAGS, scripts=scripts, url=blank(app)) as page:
        assert await page.evaluate(start(**options)) == options["transport"]
        await page.until(line("hello again", "final"))
        await page.until(line("Well, you said hello again.", "heard"))
        assert 0 < await page.evaluate("seen.latency[0].seconds") < 5
        assert await page.evaluate("loudest.you > 0.1 && loudest.duologue > 0.1")

        await page.until("seen.cut.length > 0")
        await page.evaluate("new Promise((resolve) => setTimeout(resolve, 300))")
        if options["transport"] == "webrtc":
            assert await page.evaluate(LOUDNESS) < 0.01
        cut = "call.transcript.entries.find(({ state }) => state === 'cut')"
        entry = await page.evaluate(f"({{ ...{cut} }})")
        heard = entry["text"][: entry["heardCharacters"]]
        assert heard.startswith("Well, you said")
        assert len(heard) < len(entry["text"])
        truncated = "seen.event.find((event) => event.type === 'conversation.item.truncated')"
        assert (await page.evaluate(truncated))["item_id"] == entry["id"]
        if options.get("dialect") == "duplex":
            acks = [m.event for m in await page.messages() if m.type == "playback.ack"]
            (last,) = [ack for ack in acks if ack.get("truncate")]
            assert last["item_id"] == entry["id"]
            assert len(acks) > 5
            assert await page.evaluate(
                "seen.event.some(({ type }) => type === 'playback.acknowledged')"
            )
            numbers = "seen.event.map((event) => event.server_event_seq)"
            got = await page.evaluate(numbers)  # first: more may come before the wire is read
            acked = [m.event for m in await page.messages() if m.type == "session.event_ack"]
            assert [ack["server_event_seq"] for ack in acked][: len(got)] == got
        if options["transport"] == "webrtc":  # the words are the server's
            asked = "seen.event.find(({ type }) => type === 'conversation.item.retrieved')"
            item = (await page.evaluate(asked))["item"]
            assert item["content"][0]["transcript"] == heard
        assert await page.evaluate("seen.problem.every((problem) => problem === null)")
        assert await page.evaluate("seen.notice") == []
        assert await page.evaluate(ERRORS) == []
        await page.evaluate("call.hangUp()")
        assert complaints(page) == []


@pytest.mark.parametrize("options", ROUTES)
async def test_one_types_stops_the_answer_by_hand_and_a_tool_is_called(
    browse: Browse, app: App, options: dict[str, Any]
) -> None:
    async with browse((silence(60),), flags=FLAGS, scripts=(EAR,), url=blank(app)) as page:
        assert await page.evaluate(start(**options)) == options["transport"]
        await page.evaluate("call.sendText('tell me something long')")
        await page.until("call.floor.duologue")
        await page.until(
            "call.transcript.entries.some(({ heardCharacters }) => heardCharacters > 20)"
        )
        await page.evaluate("call.interrupt()")
        await page.until("call.transcript.entries.some(({ state }) => state === 'cut')")
        await page.until("seen.event.some((e) => e.type === 'response.done')")
        assert not await page.evaluate("call.floor.duologue")
        if options["transport"] == "webrtc":
            await page.until(f"{LOUDNESS} < 0.01", timeout_s=10)

        await page.evaluate("call.sendText('what of the weather')")
        await page.until("seen.tool.length === 1")
        (result,) = await page.evaluate("seen.tool")
        assert (result["name"], result["output"]) == ("weather", "sun over x")
        await page.until(line("Well, you said sun over x.", "heard"))
        assert await page.evaluate(ERRORS) == []
        await page.evaluate("call.hangUp()")
        assert await page.evaluate("call.phase") == "ended"
        assert complaints(page) == []


@pytest.mark.parametrize("transport", ["websocket", "webrtc"])
async def test_one_can_call_without_a_microphone(browse: Browse, app: App, transport: str) -> None:
    async with browse(None, flags=FLAGS, url=blank(app)) as page:
        options = {"transport": transport, "fallback": False}
        assert await page.evaluate(start(is_deaf=True, **options)) == transport
        await page.evaluate("call.sendText('good day')")
        await page.until(line("Well, you said good day.", "heard"))
        await page.evaluate("call.hangUp()")
        assert complaints(page) == []


async def test_a_muted_voice_is_not_sent_over_webrtc_either(browse: Browse, app: App) -> None:
    microphone = (said("hello again " * 40),)
    async with browse(microphone, flags=FLAGS, scripts=(EAR,), url=blank(app)) as page:
        assert await page.evaluate(start(transport="webrtc", fallback=False)) == "webrtc"
        await page.until("loudest.you > 0.1")
        await page.until(f"(await {SENT_ENERGY}) > {SOUND}")
        await page.evaluate("call.setMuted(true)")
        await page.until(f"(await {SENT_ENERGY}) < {SOUND}")
        await page.evaluate("call.setMuted(false)")
        await page.until(f"(await {SENT_ENERGY}) > {SOUND}")
        await page.evaluate("call.hangUp()")


async def test_a_page_that_is_left_gives_its_place_back(browse: Browse, app: App) -> None:
    async with browse((silence(60),), flags=FLAGS, url=blank(app)) as page:
        assert await page.evaluate(start(transport="webrtc", fallback=False)) == "webrtc"
        assert len(app.sessions) == 1
        await page.open("about:blank")
        await app.sessions.wait_empty(8)  # long before the network would be given up
        assert len(app.sessions) == 0


async def test_a_network_without_webrtc_is_told_and_the_call_goes_over_websocket(
    browse: Browse, app: App
) -> None:
    microphone = (silence(3), said("hello again"), silence(30))
    async with browse(microphone, flags=NO_UDP, url=blank(app)) as page:
        assert await page.evaluate(start(transport="webrtc")) == "websocket"
        (notice,) = await page.evaluate("seen.notice")
        assert "WebRTC" in notice
        assert notice.endswith("The call goes over WebSocket instead.")
        await page.until(line("Well, you said hello again.", "heard"))
        await page.evaluate("call.hangUp()")


async def test_without_a_fallback_one_is_told_what_to_do(browse: Browse, app: App) -> None:
    async with browse((silence(60),), flags=NO_UDP, url=blank(app)) as page:
        message = await page.evaluate(start(transport="webrtc", fallback=False))
        assert "WebRTC does not get through." in message
        assert "Choose WebSocket" in message
        assert await page.evaluate("seen.problem.at(-1).kind") == "webrtc-blocked"
        assert await page.evaluate("call.phase") == "idle"


async def test_an_api_key_never_leaves_the_page(browse: Browse, app: App) -> None:
    async with browse((silence(60),), url=blank(app)) as page:
        message = await page.evaluate(start(key=API_KEY))
        assert "no client secret" in message
        assert "client_secrets" in message
        assert page.offered_protocols == []


@pytest.mark.parametrize("transport", ["websocket", "webrtc"])
async def test_a_secret_that_is_refused_is_told_in_the_servers_words(
    browse: Browse, app: App, transport: str
) -> None:
    async with browse((silence(60),), flags=FLAGS, url=blank(app)) as page:
        message = await page.evaluate(start(key="ek_forged", transport=transport))
        assert message.startswith("The server wants a key.")
        assert "is not valid here" in message
        assert await page.evaluate("seen.problem.at(-1).kind") == "key-refused"
