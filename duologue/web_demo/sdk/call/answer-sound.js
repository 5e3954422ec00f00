/**
 * What is seen of an answer that sounds: how loud it is, and from when on it can be heard. Pure.
 */

import { SAMPLE_RATE_HZ } from "../audio/pcm16.js";
import { AUDIBLE_RMS, LEVEL_MS } from "./answer.js";
import { loudness, steps } from "./loudness.js";

/** @typedef {import("./answer.js").Answer} Answer */

const SAMPLES_PER_MS = SAMPLE_RATE_HZ / 1000;

export class AnswerSound {
  #timeline;
  #latency;
  #transcript;
  /** @type {() => void} */
  onAudible = () => {};

  /**
   * @param {Pick<import("./conversation.js").Parts, "timeline" | "latency" | "transcript">} parts
   */
  constructor({ timeline, latency, transcript }) {
    this.#timeline = timeline;
    this.#latency = latency;
    this.#transcript = transcript;
  }

  /**
   * A chunk of what the server plays.
   * @param {Int16Array} pcm
   * @param {number} at_ms local time of its first sample
   * @param {Answer | undefined} answer
   */
  hear(pcm, at_ms, answer) {
    for (const { value, step_ms } of steps(pcm, at_ms)) {
      this.#timeline.level("duologue", step_ms, loudness(value));
      if (answer && value >= AUDIBLE_RMS) this.#audible(answer, step_ms);
    }
  }

  /**
   * @param {Answer} answer
   * @param {number} playedSamples
   * @param {number} at_ms when the last of them is audible
   */
  drawPlayed(answer, playedSamples, at_ms) {
    const levels = answer.played(playedSamples);
    for (const [index, level] of levels.entries()) {
      const level_ms = at_ms - LEVEL_MS * (levels.length - 1 - index);
      this.#timeline.level("duologue", level_ms, level);
    }
  }

  /**
   * @param {Answer} answer
   * @param {number} at_ms when its last played sample is audible
   */
  noteAudible(answer, at_ms) {
    const first = answer.firstAudibleSample;
    if (first === null || answer.playedSamples <= first) return;
    this.#audible(answer, at_ms - (answer.playedSamples - first) / SAMPLES_PER_MS);
  }

  /**
   * @param {Answer} answer
   * @param {number} audible_ms
   */
  #audible(answer, audible_ms) {
    this.onAudible();
    const reading = this.#latency.answered(audible_ms);
    if (!reading) return;
    this.#timeline.answer(audible_ms);
    this.#transcript.answerLatency(answer.id, reading.seconds);
  }
}
