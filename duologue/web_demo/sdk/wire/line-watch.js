/**
 * Whether a line is still alive: nobody tells who has fallen into a black hole. Pure: knows no line,
 * clock or timer.
 */

/** A line on which nothing comes for so long, though a sign of life was asked for, is dead. */
export const SILENCE_MS = 5000;
export const LOOK_EVERY_MS = 500;
const ASK_AFTER_MS = SILENCE_MS / 3;
/** A look that comes later than this was not taken in time: the page, or the machine, was asleep. */
const OVERSLEPT_MS = 1500;

export class LineWatch {
  #heardAt_ms;
  #askedAt_ms;
  #lookedAt_ms;

  /** @param {number} now_ms */
  constructor(now_ms) {
    this.#heardAt_ms = now_ms;
    this.#askedAt_ms = now_ms;
    this.#lookedAt_ms = now_ms;
  }

  /** @param {number} now_ms something has come */
  heard(now_ms) {
    this.#heardAt_ms = now_ms;
  }

  /**
   * @param {number} now_ms
   * @returns {"fine" | "ask" | "dead"}
   */
  look(now_ms) {
    const overslept = now_ms - this.#lookedAt_ms > OVERSLEPT_MS;
    this.#lookedAt_ms = now_ms;
    // What has come meanwhile may lie unread: it gets the time to be read.
    if (overslept) this.#heardAt_ms = Math.max(this.#heardAt_ms, now_ms - SILENCE_MS / 2);
    const silent_ms = now_ms - this.#heardAt_ms;
    if (silent_ms >= SILENCE_MS) return "dead";
    if (silent_ms < ASK_AFTER_MS || now_ms - this.#askedAt_ms < ASK_AFTER_MS) return "fine";
    this.#askedAt_ms = now_ms;
    return "ask";
  }
}
