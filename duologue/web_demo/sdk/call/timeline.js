/**
 * The call over time, in two lanes: levels, turns, waits and cuts of the last half minute.
 * Pure.
 */

/** @typedef {"you" | "duologue"} Lane */
/** @typedef {{ lane: Lane, from_ms: number, to_ms: number | null }} Turn */
/** @typedef {{ from_ms: number, to_ms: number }} Wait */
/** @typedef {{ at_ms: number, unheard: number[] }} Cut levels of what was never played, 20 ms each */

export const BIN_MS = 80;
const BINS = 512;
const KEPT_MS = BIN_MS * BINS;
const MAX_MARKS = 64;

export class Timeline {
  #levels = { you: new Float32Array(BINS), duologue: new Float32Array(BINS) };
  #bins = { you: new Float64Array(BINS).fill(-1), duologue: new Float64Array(BINS).fill(-1) };
  /** @type {Turn[]} */
  turns = [];
  /** @type {Wait[]} */
  waits = [];
  /** @type {Cut[]} */
  cuts = [];
  /** Since when an answer has been waited for; null while none is. @type {number | null} */
  waitingSince_ms = null;
  /** @type {(lane: Lane, at_ms: number, level: number) => void} */
  onLevel = () => {};
  /** @type {(cut: Cut) => void} */
  onCut = () => {};

  /**
   * @param {Lane} lane
   * @param {number} at_ms
   * @param {number} level 0 to 1; the loudest of a bin counts
   */
  level(lane, at_ms, level) {
    this.onLevel(lane, at_ms, level);
    const bin = Math.floor(at_ms / BIN_MS);
    const slot = bin % BINS;
    const isNew = this.#bins[lane][slot] !== bin;
    this.#bins[lane][slot] = bin;
    this.#levels[lane][slot] = isNew ? level : Math.max(level, this.#levels[lane][slot]);
  }

  /**
   * @param {Lane} lane
   * @param {number} bin number of the bin, time divided by BIN_MS
   * @returns {number}
   */
  levelOf(lane, bin) {
    const slot = bin % BINS;
    return this.#bins[lane][slot] === bin ? this.#levels[lane][slot] : 0;
  }

  /**
   * @param {Lane} lane
   * @param {number} at_ms
   */
  startTurn(lane, at_ms) {
    this.endTurn(lane, at_ms);
    this.turns.push({ lane, from_ms: at_ms, to_ms: null });
    this.#forget(at_ms);
  }

  /**
   * @param {Lane} lane
   * @param {number} at_ms
   */
  endTurn(lane, at_ms) {
    const turn = this.turns.findLast((candidate) => candidate.lane === lane);
    if (turn && turn.to_ms === null) turn.to_ms = Math.max(turn.from_ms, at_ms);
  }

  /** @param {number | null} since_ms null: given up, or nobody had asked */
  wait(since_ms) {
    this.waitingSince_ms = since_ms;
  }

  /** @param {number} at_ms when the answer that was waited for became audible */
  answer(at_ms) {
    if (this.waitingSince_ms !== null) {
      this.waits.push({ from_ms: this.waitingSince_ms, to_ms: at_ms });
    }
    this.waitingSince_ms = null;
  }

  /**
   * @param {number} at_ms
   * @param {number[]} unheard
   */
  cut(at_ms, unheard) {
    this.endTurn("duologue", at_ms);
    this.cuts.push({ at_ms, unheard });
    this.onCut({ at_ms, unheard });
  }

  /** @param {number} now_ms */
  #forget(now_ms) {
    const oldest_ms = now_ms - KEPT_MS;
    this.turns = this.turns.filter((turn) => (turn.to_ms ?? now_ms) > oldest_ms).slice(-MAX_MARKS);
    this.waits = this.waits.filter((wait) => wait.to_ms > oldest_ms).slice(-MAX_MARKS);
    this.cuts = this.cuts.filter((cut) => cut.at_ms > oldest_ms).slice(-MAX_MARKS);
  }
}
