/**
 * How long people wait for an answer: from the end of their speech (or from sending what they
 * typed) to the first audible sample. Pure.
 */

/** @typedef {{ seconds: number, kind: "spoken" | "typed" }} Reading */

const MAX_READINGS = 24;

export class Latency {
  /** @type {{ at_ms: number, kind: "spoken" | "typed" } | null} */
  #asked = null;
  /** @type {Reading[]} oldest first */
  readings = [];
  onChange = () => {};

  /**
   * @param {number} at_ms
   * @param {"spoken" | "typed"} kind
   */
  asked(at_ms, kind) {
    this.#asked = { at_ms, kind };
  }

  /** Somebody spoke again, so that whatever comes is not the answer to what was asked before. */
  withdrawn() {
    this.#asked = null;
  }

  /**
   * @param {number} at_ms
   * @returns {Reading | null} null where nobody had asked (a greeting)
   */
  answered(at_ms) {
    if (!this.#asked) return null;
    const { at_ms: asked_ms, kind } = this.#asked;
    this.#asked = null;
    /** @type {Reading} */
    const reading = { seconds: (at_ms - asked_ms) / 1000, kind };
    this.readings.push(reading);
    if (this.readings.length > MAX_READINGS) this.readings.shift();
    this.onChange();
    return reading;
  }

  /** @returns {number | null} seconds */
  median() {
    if (this.readings.length === 0) return null;
    const sorted = this.readings.map(({ seconds }) => seconds).sort((a, b) => a - b);
    const middle = sorted.length >> 1;
    return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
  }
}
