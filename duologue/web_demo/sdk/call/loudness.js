/**
 * From sample levels to what people see and count as speech. Pure.
 */

import { SAMPLE_RATE_HZ, rms as rmsOf } from "../audio/pcm16.js";

/** One level for every 20 ms. */
export const STEP_MS = 20;
const STEP_SAMPLES = (STEP_MS * SAMPLE_RATE_HZ) / 1000;

/** A quiet room, and a voice close to the microphone. */
const FLOOR_DB = -54;
const CEILING_DB = -8;
/** Bends the scale, so that syllables stand out and background stays low. */
const CONTRAST = 1.8;

/**
 * @param {number} rms 0 to 1
 * @returns {number} height of a bar, 0 to 1
 */
export function loudness(rms) {
  if (rms <= 0) return 0;
  const db = 20 * Math.log10(rms);
  return Math.min(1, Math.max(0, (db - FLOOR_DB) / (CEILING_DB - FLOOR_DB))) ** CONTRAST;
}

/**
 * @param {Int16Array} pcm
 * @param {number} at_ms local time of its first sample
 * @returns {{ value: number, step_ms: number }[]} root mean square of each step, and its beginning
 */
export function steps(pcm, at_ms) {
  return Array.from({ length: Math.ceil(pcm.length / STEP_SAMPLES) }, (_, index) => ({
    value: rmsOf(pcm, index * STEP_SAMPLES, Math.min(pcm.length, (index + 1) * STEP_SAMPLES)),
    step_ms: at_ms + index * STEP_MS,
  }));
}

/** A voice is this far above the room. */
const VOICE_TO_NOISE = 4;
const MIN_VOICE_RMS = 0.004;
/** The noise floor falls at once and rises slowly: by this factor each step of 20 ms. */
const FLOOR_RISE = 1.005;
/** Steps remembered: 30 s. */
const MAX_STEPS = 1500;

/** Remembers when the person was last heard, to the nearest 20 ms. */
export class VoiceActivity {
  #noise = 0.002;
  /** @type {number[]} ends of voiced steps, in order */
  #voicedUntil_ms = [];

  /**
   * @param {number} rms of one step
   * @param {number} endedAt_ms
   */
  step(rms, endedAt_ms) {
    this.#noise = Math.min(rms, this.#noise * FLOOR_RISE);
    this.#noise = Math.max(this.#noise, 0.0005);
    if (rms < MIN_VOICE_RMS || rms < VOICE_TO_NOISE * this.#noise) return;
    this.#voicedUntil_ms.push(endedAt_ms);
    if (this.#voicedUntil_ms.length > MAX_STEPS) this.#voicedUntil_ms.shift();
  }

  /**
   * @param {number} from_ms
   * @param {number} to_ms
   * @returns {number | null} when the voice was last heard in between
   */
  lastVoiced(from_ms, to_ms) {
    const last = this.#voicedUntil_ms.findLast((at) => at <= to_ms);
    return last !== undefined && last >= from_ms ? last : null;
  }
}
