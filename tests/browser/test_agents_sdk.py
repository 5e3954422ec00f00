"""OpenAI's Agents SDK over WebRTC, unmodified, in Chromium, from a page of its own origin."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from duologue.app import running_app
from duologue.gateway.settings import GatewaySettings
from duologue.gateway.webrtc.settings import WebRtcSettings
from tests.browser.conftest import Browse
from tests.browser.test_sdk import EAR, FLAGS, LOUDNESS, said
from tests.browser.voice import silence
from tests.conformance.talking_gateway import API_KEY, talking_settings
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.node

PACKAGES = Path(__file__).parents[1] / "conformance" / "node" / "node_modules"
BUNDLE = PACKAGES / "@openai" / "agents-realtime" / "dist" / "bundle"

CALL = """
(async () => {
  window.seen = { complaints: [], events: [], errors: [], said: {}, weather: '' };
  for (const kind of ['warn', 'error']) {
    console[kind] = (...words) => seen.complaints.push(words.join(' '));
  }
  const agents = await import('/bundle/openai-realtime-agents.mjs');
  const weather = agents.tool({
    name: 'weather',
    description: 'Tell the weather.',
    parameters: {
      type: 'object',
      properties: { what: { type: 'string' } },
      required: ['what'],
      additionalProperties: false,
    },
    execute: ({ what }) => {
      seen.weather = what;
      return `sun over ${what}`;
    },
  });
  const mediaStream = await navigator.mediaDevices.getUserMedia({
    audio: { echoCancellation: false, noiseSuppression: false, autoGainControl: false },
  });
  const agent = new agents.RealtimeAgent({ name: 'a', instructions: 'Be kind.', tools: [weather] });
  const transport = new agents.OpenAIRealtimeWebRTC({
    baseUrl: 'GATEWAY/v1/realtime/calls',
    mediaStream,
  });
  window.session = new agents.RealtimeSession(agent, { transport, tracingDisabled: true });
  session.on('transport_event', ({ type }) => seen.events.push(type));
  session.on('error', (event) => seen.errors.push(JSON.stringify(event).slice(0, 500)));
  session.on('history_updated', (history) => {
    for (const item of history) {
      for (const { transcript, text } of item.content ?? []) {
        if (transcript ?? text) seen.said[`${item.role}: ${transcript ?? text}`] = true;
      }
    }
  });
  const began = performance.now();
  await session.connect({ apiKey: 'SECRET' });
  return performance.now() - began;
})()
"""


@asynccontextmanager
async def page_server() -> AsyncIterator[str]:
    """Serve an empty page, and the package as it was installed; yields the origin."""

    async def send(_request: web.Request) -> web.Response:
        return web.Response(text="<!doctype html><title>x</title>", content_type="text/html")

    app = web.Application()
    app.router.add_get("/", send)
    app.router.add_static("/bundle", BUNDLE)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


async def secret_of(gateway: str) -> str:
    """Ask for a client secret, as the page's own server does."""
    headers = {"Authorization": f"Bearer {API_KEY}"}
    async with (
        aiohttp.ClientSession(headers=headers) as http,
        http.post(f"{gateway}/v1/realtime/client_secrets", json={}) as answer,
    ):
        return str((await answer.json())["value"])


async def test_it_talks_is_cut_off_calls_a_tool_and_leaves(
    browse: Browse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C69, must-haves 33 and 34."""
    monkeypatch.syspath_prepend(tmp_path)
    microphone = (silence(2.5), said("hello again"), silence(3.0))
    microphone += (said("hello long"), silence(2.5), said("hello again"), silence(60))
    async with page_server() as origin:
        door = GatewaySettings(
            api_keys=(API_KEY,),
            allowed_origins=(origin,),
            webrtc=WebRtcSettings(bind_address="127.0.0.1"),
        )
        async with (
            running_app(talking_settings(tmp_path, gateway=door)) as app,
            browse(microphone, flags=FLAGS, scripts=(EAR,), url=f"{origin}/") as page,
        ):
            call = CALL.replace("GATEWAY", app.url)
            connect_ms = await page.evaluate(call.replace("SECRET", await secret_of(app.url)))
            assert connect_ms < 5000, "session.updated was not seen, and waited for in vain"
            await page.until("seen.said['user: hello again']")
            await page.until("seen.said['assistant: Well, you said hello again.']")
            await page.until("seen.events.includes('output_audio_buffer.started')")
            await page.until(f"{LOUDNESS} > 0.05")

            await page.until("seen.events.includes('output_audio_buffer.cleared')")
            await page.until("seen.events.includes('conversation.item.truncated')")

            stopped = "seen.events.filter((type) => type === 'output_audio_buffer.stopped').length"
            await page.until(f"{stopped} >= 2")
            started = stopped.replace("stopped", "started")
            sounds = await page.evaluate(started)
            await page.evaluate("session.sendMessage('tell me something long')")
            await page.until(f"{started} > {sounds} && {LOUDNESS} > 0.05")
            cleared = "seen.events.filter((type) => type === 'output_audio_buffer.cleared').length"
            before = await page.evaluate(cleared)
            await page.evaluate("session.interrupt()")
            await page.until(f"{cleared} > {before}")
            await page.until(f"{LOUDNESS} < 0.01")

            await page.evaluate("session.sendMessage('what of the weather')")
            await page.until("seen.weather === 'x'")
            await page.until("seen.said['assistant: Well, you said sun over x.']")
            await page.evaluate("session.close()")
            assert await page.evaluate("seen.errors") == []
            assert await page.evaluate("seen.complaints") == []
            assert [error for error in page.errors if "favicon" not in error] == []
            await app.sessions.wait_empty(PATIENCE_S)
            assert len(app.sessions) == 0
