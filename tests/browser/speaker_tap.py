"""Records what the page plays, at the last node before the loudspeaker, sample for sample."""

from __future__ import annotations

import base64

import numpy as np

from tests.browser.chromium import Page
from tests.browser.voice import Pcm

SCRIPT = """
(() => {
  const connect = AudioNode.prototype.connect;
  const source = `registerProcessor("tap", class extends AudioWorkletProcessor {
    process([[samples]]) {
      if (samples) this.port.postMessage(samples.slice());
      return true;
    }
  });`;
  const module = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  const blocks = (window.tappedBlocks = []);
  AudioNode.prototype.connect = function (target, ...rest) {
    const result = connect.call(this, target, ...rest);
    if (target instanceof AudioDestinationNode && this instanceof GainNode) {
      this.context.audioWorklet.addModule(module).then(() => {
        const tap = new AudioWorkletNode(this.context, "tap");
        tap.port.onmessage = ({ data }) => blocks.push(data);
        connect.call(connect.call(this, tap), target);
      });
    }
    return result;
  };
})();
"""

READ = """
(() => {
  const samples = new Float32Array(tappedBlocks.reduce((sum, block) => sum + block.length, 0));
  let at = 0;
  for (const block of tappedBlocks) {
    samples.set(block, at);
    at += block.length;
  }
  const bytes = new Uint8Array(samples.buffer);
  let text = "";
  for (let i = 0; i < bytes.length; i += 8192) {
    text += String.fromCharCode(...bytes.subarray(i, i + 8192));
  }
  return btoa(text);
})()
"""

PROBE_SAMPLES = 1200
"""Speech of this length, 50 ms, does not occur twice."""

LOUD = 500
"""Of 32768; between words the voice is quieter."""


async def recording(page: Page) -> Pcm:
    """Return everything played so far, on the 24 kHz of the wire."""
    samples = np.frombuffer(base64.b64decode(await page.evaluate(READ)), dtype=np.float32)
    return np.rint(samples * 32768).astype(np.int16)


def sent_audio(page: Page, item_id: str) -> Pcm:
    """Return the audio that the server has sent for an item."""
    deltas = [
        base64.b64decode(message.event["delta"])
        for message in page.wire
        if message.type == "response.output_audio.delta" and message.event["item_id"] == item_id
    ]
    return np.frombuffer(b"".join(deltas), dtype=np.int16)


def played_samples(recorded: Pcm, audio: Pcm) -> int:
    """Return how much of the audio was played, from its beginning and in order.

    A pause in between is allowed: on a busy machine the server may be late.
    """
    played = first_loud(audio)
    place = 0
    while played < len(audio):
        found = find(recorded[place:], audio[played : played + PROBE_SAMPLES])
        if found is None:
            break
        place += found
        length = min(len(recorded) - place, len(audio) - played)
        differs = np.flatnonzero(
            recorded[place : place + length] != audio[played : played + length]
        )
        count = int(differs[0]) if len(differs) else length
        played += count
        place += count
    return played


def first_loud(audio: Pcm) -> int:
    """Return the first sample that can be told from silence."""
    is_loud = np.abs(audio.astype(np.int32)) > LOUD
    return int(np.argmax(is_loud)) if is_loud.any() else len(audio)


def find(recorded: Pcm, probe: Pcm) -> int | None:
    """Return where the probe occurs in the recording."""
    haystack, needle = recorded.tobytes(), probe.tobytes()
    at = haystack.find(needle)
    while at >= 0 and at % 2 == 1:  # between two samples
        at = haystack.find(needle, at + 1)
    return None if at < 0 else at // 2
