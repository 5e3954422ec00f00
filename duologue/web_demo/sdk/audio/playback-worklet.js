/**
 * Plays the queue of answers at 24 kHz and reports exact positions.
 * Runs on the audio thread; the queue's rules are in playback-buffer.js.
 */

import { PlaybackBuffer } from "./playback-buffer.js";
import { SAMPLE_RATE_HZ } from "./pcm16.js";

const CAPACITY_SAMPLES = 120 * SAMPLE_RATE_HZ;
/** A position report every fourth quantum: 21 ms, finer than any word. */
const QUANTA_PER_REPORT = 4;

class PlaybackProcessor extends AudioWorkletProcessor {
  #buffer = new PlaybackBuffer(CAPACITY_SAMPLES);
  #quanta = 0;

  constructor() {
    super();
    this.port.onmessage = ({ data }) => this.#obey(data);
  }

  /**
   * @param {Float32Array[][]} _inputs
   * @param {Float32Array[][]} outputs
   * @returns {boolean}
   */
  process(_inputs, outputs) {
    for (const event of this.#buffer.render(outputs[0][0])) {
      this.port.postMessage({ ...event, at_s: currentTime });
    }
    this.#quanta += 1;
    const track = this.#buffer.current;
    if (track && this.#quanta % QUANTA_PER_REPORT === 0) {
      const { id, playedSamples } = track;
      this.port.postMessage({ type: "position", id, playedSamples, at_s: currentTime });
    }
    return true;
  }

  /** @param {import("./playback.js").PlaybackOrder} order */
  #obey(order) {
    if (order.type === "append") {
      const refusedSamples = this.#buffer.append(order.id, order.pcm);
      if (refusedSamples > 0) this.port.postMessage({ type: "full", refusedSamples });
    } else if (order.type === "complete") {
      this.#buffer.complete(order.id);
    } else if (order.type === "flush") {
      const played = this.#buffer.flush();
      this.port.postMessage({ type: "flushed", order: order.order, played, at_s: currentTime });
    }
  }
}

registerProcessor("playback", PlaybackProcessor);
