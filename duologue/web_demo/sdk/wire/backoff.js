/**
 * The waits between attempts to dial a lost line again. Pure: knows no line, clock or timer.
 */

const FIRST_MS = 200;
const LONGEST_MS = 5000;
/** Servers keep a session for less, and say so when they have not. */
export const GIVE_UP_MS = 45_000;

export class Backoff {
  #random;
  attempts = 0;

  /**
   * @param {number} lostAt_ms
   * @param {() => number} random from 0 to 1
   */
  constructor(lostAt_ms, random) {
    this.lostAt_ms = lostAt_ms;
    this.#random = random;
  }

  /**
   * @param {number} now_ms
   * @returns {number | null} how long to wait before the next attempt; null: give up
   */
  next(now_ms) {
    if (now_ms - this.lostAt_ms >= GIVE_UP_MS) return null;
    const longest_ms = Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(this.attempts, 16));
    // The first is soon, since most outages are over at once; no two pages come back together.
    const least_ms = this.attempts === 0 ? 0 : longest_ms / 2;
    this.attempts += 1;
    return least_ms + this.#random() * (longest_ms - least_ms);
  }
}
