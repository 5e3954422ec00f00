/**
 * Translates the server's time, milliseconds of audio sent to it, into local time.
 * The two run apart whenever nothing is sent, as between the turns of push to talk.
 */

/** Chunks remembered: at 40 ms each, one minute. */
const MAX_CHUNKS = 1500;

export class InputClock {
  #sent_ms = 0;
  /** @type {{ sent_ms: number, at_ms: number }[]} */
  #chunks = [];

  /**
   * @param {number} duration_ms
   * @param {number} at_ms local time of its first sample
   */
  sent(duration_ms, at_ms) {
    this.#chunks.push({ sent_ms: this.#sent_ms, at_ms });
    if (this.#chunks.length > MAX_CHUNKS) this.#chunks.shift();
    this.#sent_ms += duration_ms;
  }

  /**
   * @param {number} sent_ms as in `audio_start_ms` and `audio_end_ms`
   * @returns {number | null} local time; null for what was never sent, or long ago
   */
  localTime(sent_ms) {
    const chunk = this.#chunks.findLast((candidate) => candidate.sent_ms <= sent_ms);
    return chunk ? chunk.at_ms + sent_ms - chunk.sent_ms : null;
  }
}
