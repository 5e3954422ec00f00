/**
 * Microphone samples at the device's rate in, 40 ms chunks of 24 kHz PCM out.
 * Runs on the audio thread; knows nothing of who listens.
 */

import { SAMPLE_RATE_HZ, fromFloat } from "./pcm16.js";
import { Resampler } from "./resampler.js";

const CHUNK_SAMPLES = 0.04 * SAMPLE_RATE_HZ;
const QUANTUM_SAMPLES = 128;

class CaptureProcessor extends AudioWorkletProcessor {
  #resampler = new Resampler(sampleRate, SAMPLE_RATE_HZ);
  #mono = new Float32Array(QUANTUM_SAMPLES);
  #resampled = new Float32Array(this.#resampler.maxOutputSamples(QUANTUM_SAMPLES));
  #chunk = new Float32Array(CHUNK_SAMPLES);
  #filled = 0;

  /**
   * @param {Float32Array[][]} inputs
   * @returns {boolean}
   */
  process(inputs) {
    this.#mix(inputs[0]);
    const count = this.#resampler.process(this.#mono, this.#resampled);
    for (let i = 0; i < count; i += 1) {
      this.#chunk[this.#filled] = this.#resampled[i];
      this.#filled += 1;
      if (this.#filled === CHUNK_SAMPLES) this.#post();
    }
    return true;
  }

  /**
   * A source without channels (a track that is just being replaced) counts as silence, so that
   * the stream's clock goes on.
   * @param {Float32Array[]} channels
   */
  #mix(channels) {
    this.#mono.fill(0);
    for (const channel of channels) {
      for (let i = 0; i < channel.length; i += 1) this.#mono[i] += channel[i] / channels.length;
    }
  }

  #post() {
    const pcm = fromFloat(this.#chunk);
    this.port.postMessage({ pcm, endedAt_s: currentTime }, [pcm.buffer]);
    this.#filled = 0;
  }
}

registerProcessor("capture", CaptureProcessor);
