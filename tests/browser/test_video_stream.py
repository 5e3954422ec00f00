"""Chromium plays a video while it is made: Media Source Extensions over the WebSocket."""

from __future__ import annotations

from pathlib import Path

import pytest

from duologue.gateway.http.settings import HttpSettings
from duologue.gateway.settings import GatewaySettings
from duologue.jobs.settings import JobSettings
from tests.browser.chromium import new_page
from tests.fakes.media_gateway import media_gateway, media_settings

pytestmark = pytest.mark.browser

PICTURES = 24

PLAYER = """
(async () => {
  const seen = { chunks: 0, presented: 0 };
  window.seen = seen;
  const video = document.createElement("video");
  video.muted = true;
  document.body.append(video);
  const source = new MediaSource();
  video.src = URL.createObjectURL(source);
  await new Promise((resolve) => source.addEventListener("sourceopen", resolve, { once: true }));
  const socket = new WebSocket(`ws://${location.host}/v1/realtime/video`);
  socket.binaryType = "arraybuffer";
  const waiting = [];
  let buffer, done = false;
  const pump = () => {
    if (!buffer || buffer.updating) return;
    if (waiting.length) buffer.appendBuffer(waiting.shift());
    else if (done && source.readyState === "open") source.endOfStream();
  };
  video.addEventListener("error", () => { seen.error = video.error.message; });
  const presented = () => { seen.presented += 1; video.requestVideoFrameCallback(presented); };
  video.requestVideoFrameCallback(presented);
  video.addEventListener("ended", () => {
    const quality = video.getVideoPlaybackQuality();
    seen.total = quality.totalVideoFrames;
    seen.duration = video.duration;
    seen.size = [video.videoWidth, video.videoHeight];
    seen.decodedAudio = video.webkitAudioDecodedByteCount;
    seen.over = true;
  });
  socket.onopen = () => socket.send(JSON.stringify(
    { type: "session.start", prompt: "waves", num_frames: %d, fps: 24, size: "64x48" }));
  socket.onmessage = (event) => {
    if (typeof event.data !== "string") {
      seen.chunks += 1; waiting.push(event.data); pump(); return;
    }
    const message = JSON.parse(event.data);
    if (message.type === "video.start") {
      seen.mime = message.mime;
      seen.supported = MediaSource.isTypeSupported(message.mime);
      buffer = source.addSourceBuffer(message.mime);
      buffer.addEventListener("updateend", pump);
      video.play();
    } else if (message.type === "session.done") { done = true; pump(); }
    else if (message.type === "error") { seen.error = message.error.message; }
  };
})()
"""

WITH_SOUND = """
name: talkies
extends: sketches
stages:
  - {name: sketch, settings: {with_sound: true}}
"""


@pytest.mark.parametrize("with_sound", [False, True])
async def test_chromium_shows_every_picture(tmp_path: Path, with_sound: bool) -> None:
    file = tmp_path / "talkies.yaml"
    file.write_text(WITH_SOUND)
    settings = media_settings(
        pipelines=(file,),
        gateway=GatewaySettings(port=0, drain_timeout_s=0, http=HttpSettings()),
        jobs=JobSettings(folder=tmp_path / "jobs"),
    )
    script = PLAYER % PICTURES
    if with_sound:
        script = script.replace('prompt: "waves"', 'prompt: "waves", model: "talkies"')
    profile = tmp_path / "profile"
    profile.mkdir()
    flags = ("--autoplay-policy=no-user-gesture-required",)
    # With a script of ours the page's own policy, which allows it no videos, is switched off.
    async with (
        media_gateway(settings) as gateway,
        new_page(profile, flags, ("void 0",)) as page,
    ):
        await page.open(f"{gateway.url}/")
        await page.evaluate(script)
        await page.until("window.seen.over || window.seen.error")
        seen = await page.evaluate("window.seen")
    assert seen.get("error") is None
    assert seen["supported"], seen["mime"]
    assert ("mp4a" in seen["mime"]) is with_sound
    assert seen["total"] == PICTURES
    assert seen["size"] == [64, 48]
    assert abs(seen["duration"] - 1.0) < 0.1
    assert (seen["decodedAudio"] > 0) is with_sound
