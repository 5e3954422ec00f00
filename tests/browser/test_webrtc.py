"""A browser's own RTCPeerConnection holds a call: what an app does that knows WebRTC alone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest

from duologue.app import App, running_app
from duologue.engines.runners.scripted import tone_hz
from duologue.gateway.webrtc.settings import WebRtcSettings
from tests.browser.chromium import Page
from tests.browser.conftest import Browse
from tests.browser.voice import Pcm, silence, tone
from tests.fakes.talking_gateway import LONG_LINE, talking_settings
from tests.patience import PATIENCE_S

FLAGS = ("--allow-loopback-in-peer-connection",)
"""Browsers keep calls off 127.0.0.1; the tests stay on it."""

CALL = """
(async () => {
  const connection = new RTCPeerConnection();
  const microphone = await navigator.mediaDevices.getUserMedia({
    audio: { echoCancellation: false, noiseSuppression: false, autoGainControl: false },
  });
  connection.addTrack(microphone.getTracks()[0], microphone);
  window.connection = connection;
  window.events = [];
  window.channel = connection.createDataChannel('oai-events');
  channel.onmessage = (message) => events.push(JSON.parse(message.data));
  connection.ontrack = ({ streams, track }) => {
    const stream = streams[0] ?? new MediaStream([track]);
    window.player = new Audio();
    player.srcObject = stream;
    player.play();
    const context = new AudioContext();
    window.ear = context.createAnalyser();
    ear.fftSize = 8192;
    ear.smoothingTimeConstant = 0;
    context.createMediaStreamSource(stream).connect(ear);
    window.rateHz = context.sampleRate;
  };
  await connection.setLocalDescription();
  await new Promise((done) => {
    const look = () => connection.iceGatheringState === 'complete' && done();
    connection.onicegatheringstatechange = look;
    look();
  });
  const answer = await fetch('/v1/realtime/calls', {
    method: 'POST',
    headers: { 'Content-Type': 'application/sdp' },
    body: connection.localDescription.sdp,
  });
  window.location_ = answer.headers.get('Location');
  await connection.setRemoteDescription({ type: 'answer', sdp: await answer.text() });
  return answer.status;
})()
"""

HEARD = """
(() => {
  const bins = new Float32Array(ear.frequencyBinCount);
  ear.getFloatFrequencyData(bins);
  const best = bins.indexOf(Math.max(...bins));
  return { hz: (best * rateHz) / ear.fftSize, db: bins[best] };
})()
"""


def spoken(seconds: float) -> Pcm:
    """A sound that the detector takes for speech."""
    return tone(220, seconds)


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    settings = talking_settings(tmp_path, LONG_LINE)
    gateway = settings.gateway.model_copy(
        update={"webrtc": WebRtcSettings(bind_address="127.0.0.1")}
    )
    async with running_app(settings.model_copy(update={"gateway": gateway})) as app:
        yield app
        await app.sessions.wait_empty(PATIENCE_S)
        assert len(app.sessions) == 0


async def happened(page: Page, kind: str) -> None:
    await page.until(f"events.some((event) => event.type === '{kind}')")


async def test_a_browser_talks_hears_the_answer_and_cuts_it_off(browse: Browse, app: App) -> None:
    microphone = (silence(1.5), spoken(1.5), silence(4.0), spoken(1.5), silence(30))
    async with browse(microphone, flags=FLAGS, url=app.url) as page:
        assert await page.evaluate(CALL) == 201
        await happened(page, "session.created")
        await happened(page, "output_audio_buffer.started")
        await page.until(f"{HEARD}.db > -40", timeout_s=20)
        heard = await page.evaluate(HEARD)
        assert heard["hz"] == pytest.approx(tone_hz(LONG_LINE), abs=15)
        await happened(page, "output_audio_buffer.cleared")
        await page.until(f"{HEARD}.db < -70", timeout_s=20)
        types = await page.evaluate("events.map((event) => event.type)")
        assert "response.output_audio.delta" not in types
        assert "error" not in types
        done = await page.evaluate("events.find((event) => event.type === 'response.done')")
        assert done["response"]["status_details"]["reason"] == "turn_detected"
        assert await page.evaluate("fetch(location_ + '/hangup', {method: 'POST'}).then(r => r.ok)")
        await page.until("connection.connectionState !== 'connected'")
        assert page.errors == []


async def test_what_a_browser_plays_has_no_holes(browse: Browse, app: App) -> None:
    """C47: every packet at its time; what the browser made up by itself is what was missing."""
    microphone = (silence(1.0), spoken(1.2), silence(30))
    async with browse(microphone, flags=FLAGS, url=app.url) as page:
        assert await page.evaluate(CALL) == 201
        await happened(page, "output_audio_buffer.started")
        await page.until("events.some((e) => e.type === 'response.output_audio_transcript.delta')")
        counted = """
        (async () => {
          await new Promise((done) => setTimeout(done, 3000));
          const stats = [...(await connection.getStats()).values()];
          const track = stats.find((s) => s.type === 'inbound-rtp');
          return [track.packetsReceived, track.packetsLost, track.concealedSamples,
                  track.totalSamplesReceived, track.silentConcealedSamples];
        })()
        """
        received, lost, concealed, total, silent = await page.evaluate(counted)
        assert received > 100
        assert lost == 0
        assert np.clip(concealed - silent, 0, None) < 0.05 * total
        await page.evaluate("connection.close()")
