/**
 * Draws the timeline: your bars grow up from the middle, Duologue's grow down, time flows to the
 * left. Right of the line that stands for now is audio that has arrived and is not played yet.
 */

import { LEVEL_MS } from "../sdk/call/answer.js";
import { BIN_MS } from "../sdk/call/timeline.js";

/** @typedef {import("../sdk/duologue.js").DuologueCall["timeline"]} Timeline */
/** @typedef {import("../sdk/call/timeline.js").Lane} Lane */

const NARROW_PX = 600;
/** Half of the corridor between the lanes, where waits are written. */
const CORRIDOR_PX = 11;
const NOW_SHARE = 0.74;
/** Of what was cut, this much stays visible as an outline. */
const GHOST_MS = 2200;
/** The names of the lanes stand in the left corners. */
const LANE_NAME_PX = 84;
const LEVELS_PER_BIN = BIN_MS / LEVEL_MS;

/** @typedef {{ you: string, duologue: string, ink: string, muted: string, line: string, cut: string, paper: string }} Palette */

export class TimelineCanvas {
  #canvas;
  #context;
  /** @type {Palette} */
  #palette;
  #width = 0;
  #height = 0;
  #pxPerMs = 0;
  #barPx = 0;
  #x0 = 0;
  #origin_ms = 0;

  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.#canvas = canvas;
    this.#context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    this.#palette = readPalette(canvas);
  }

  /** The canvas has a new size, or the page new colours. */
  fit() {
    const { width, height } = this.#canvas.getBoundingClientRect();
    const scale = window.devicePixelRatio || 1;
    this.#canvas.width = Math.round(width * scale);
    this.#canvas.height = Math.round(height * scale);
    this.#context.setTransform(scale, 0, 0, scale, 0, 0);
    this.#width = width;
    this.#height = height;
    const isNarrow = width < NARROW_PX;
    this.#pxPerMs = (isNarrow ? 3 : 5) / BIN_MS;
    this.#barPx = isNarrow ? 1.9 : 3;
    this.#palette = readPalette(this.#canvas);
  }

  /**
   * @param {Timeline} timeline
   * @param {number} now_ms
   * @param {number[]} upcoming levels of what is still to be played, 20 ms each
   * @param {boolean} isStill turn pages instead of flowing
   */
  draw(timeline, now_ms, upcoming, isStill) {
    this.#place(now_ms, isStill);
    this.#context.clearRect(0, 0, this.#width, this.#height);
    this.#drawTurns(timeline, now_ms);
    this.#drawPast(timeline, now_ms, "you");
    this.#drawPast(timeline, now_ms, "duologue");
    this.#drawGhosts(timeline, now_ms, upcoming.length > 0);
    this.#drawUpcoming(now_ms, upcoming);
    this.#drawNow(now_ms);
    for (const cut of timeline.cuts) this.#drawCut(cut.at_ms);
    for (const { from_ms, to_ms } of timeline.waits) this.#drawWait(from_ms, to_ms, 1);
    const since_ms = timeline.waitingSince_ms;
    if (since_ms !== null) this.#drawWait(since_ms, Math.max(since_ms, now_ms), 0.6);
  }

  /**
   * @param {number} now_ms
   * @param {boolean} isStill
   */
  #place(now_ms, isStill) {
    const span_ms = this.#width / this.#pxPerMs;
    const page_ms = 0.4 * span_ms;
    this.#x0 = 0;
    this.#origin_ms = isStill
      ? Math.floor(now_ms / page_ms) * page_ms - NOW_SHARE * span_ms + page_ms
      : now_ms - NOW_SHARE * span_ms;
  }

  /** @param {number} at_ms */
  #x(at_ms) {
    return this.#x0 + (at_ms - this.#origin_ms) * this.#pxPerMs;
  }

  /**
   * @param {Timeline} timeline
   * @param {number} now_ms
   */
  #drawTurns(timeline, now_ms) {
    for (const { lane, from_ms, to_ms } of timeline.turns) {
      const left = this.#x(from_ms) - 4;
      const width = Math.max(8, this.#x(to_ms ?? now_ms) + 4 - left);
      const height = this.#height / 2 - CORRIDOR_PX;
      const top = lane === "you" ? 0 : this.#height / 2 + CORRIDOR_PX;
      this.#fill(this.#palette[lane], 0.09);
      this.#context.beginPath();
      this.#context.roundRect(left, top, width, height, 8);
      this.#context.fill();
    }
  }

  /**
   * @param {Timeline} timeline
   * @param {number} now_ms
   * @param {Lane} lane
   */
  #drawPast(timeline, now_ms, lane) {
    const turns = timeline.turns.filter((turn) => turn.lane === lane);
    const first = Math.max(0, Math.floor(this.#origin_ms / BIN_MS) - 1);
    for (let bin = first; bin * BIN_MS < now_ms; bin += 1) {
      const middle_ms = (bin + 0.5) * BIN_MS;
      const isTurn = turns.some(
        ({ from_ms, to_ms }) => from_ms - BIN_MS <= middle_ms && middle_ms <= (to_ms ?? now_ms) + BIN_MS,
      );
      this.#fill(this.#palette[lane], isTurn ? 1 : 0.32);
      this.#bar(lane, middle_ms, timeline.levelOf(lane, bin));
    }
  }

  /**
   * @param {number} now_ms
   * @param {number[]} upcoming
   */
  #drawUpcoming(now_ms, upcoming) {
    const firstBin = Math.floor(now_ms / BIN_MS) + 1;
    for (let bin = 0; bin * LEVELS_PER_BIN < upcoming.length; bin += 1) {
      const middle_ms = (firstBin + bin + 0.5) * BIN_MS;
      if (this.#x(middle_ms) > this.#width) break;
      this.#fill(this.#palette.duologue, 0.3);
      this.#bar("duologue", middle_ms, loudest(upcoming, bin));
    }
  }

  /**
   * @param {Timeline} timeline
   * @param {number} now_ms
   * @param {boolean} isSpeakingAgain
   */
  #drawGhosts(timeline, now_ms, isSpeakingAgain) {
    for (const { at_ms, unheard } of timeline.cuts) {
      const next = timeline.turns.find((turn) => turn.lane === "duologue" && turn.from_ms > at_ms);
      const end_ms = Math.min(at_ms + GHOST_MS, next?.from_ms ?? Infinity, isSpeakingAgain ? now_ms : Infinity);
      const firstBin = Math.floor(at_ms / BIN_MS) + 1;
      for (let bin = 0; bin * LEVELS_PER_BIN < unheard.length; bin += 1) {
        const middle_ms = (firstBin + bin + 0.5) * BIN_MS;
        if (middle_ms > end_ms) break;
        this.#fill(this.#palette.cut, 0.4 * (1 - (middle_ms - at_ms) / GHOST_MS));
        this.#bar("duologue", middle_ms, loudest(unheard, bin));
      }
    }
  }

  /** @param {number} now_ms */
  #drawNow(now_ms) {
    const x = this.#x(now_ms);
    this.#fill(this.#palette.ink, 0.22);
    this.#context.fillRect(x - 0.5, 0, 1, this.#height);
  }

  /** @param {number} at_ms */
  #drawCut(at_ms) {
    const x = this.#x(at_ms);
    const context = this.#context;
    context.globalAlpha = 1;
    context.strokeStyle = this.#palette.cut;
    context.lineWidth = 1.5;
    context.setLineDash([3, 3]);
    context.beginPath();
    context.moveTo(x, 0);
    context.lineTo(x, this.#height);
    context.stroke();
    context.setLineDash([]);
    if (x > LANE_NAME_PX) this.#label(x, this.#height - 9, "cut", this.#palette.cut, 1);
  }

  /**
   * @param {number} from_ms
   * @param {number} to_ms
   * @param {number} alpha
   */
  #drawWait(from_ms, to_ms, alpha) {
    const y = this.#height / 2;
    const context = this.#context;
    this.#fill(this.#palette.muted, 0.7 * alpha);
    context.fillRect(this.#x(from_ms), y - 0.5, this.#x(to_ms) - this.#x(from_ms), 1);
    for (const end of [from_ms, to_ms]) {
      context.beginPath();
      context.arc(this.#x(end), y, 2, 0, 2 * Math.PI);
      context.fill();
    }
    const seconds = ((to_ms - from_ms) / 1000).toFixed(2);
    this.#label((this.#x(from_ms) + this.#x(to_ms)) / 2, y, `${seconds} s`, this.#palette.ink, alpha);
  }

  /**
   * @param {number} x
   * @param {number} y
   * @param {string} text
   * @param {string} colour
   * @param {number} alpha
   */
  #label(x, y, text, colour, alpha) {
    const context = this.#context;
    context.font = "600 11px system-ui, sans-serif";
    context.textAlign = "center";
    context.textBaseline = "middle";
    const width = context.measureText(text).width + 10;
    this.#fill(this.#palette.paper, 1);
    context.beginPath();
    context.roundRect(x - width / 2, y - 8, width, 16, 8);
    context.fill();
    this.#fill(colour, alpha);
    context.fillText(text, x, y + 0.5);
  }

  /**
   * @param {Lane} lane
   * @param {number} middle_ms
   * @param {number} level
   */
  #bar(lane, middle_ms, level) {
    const room = this.#height / 2 - CORRIDOR_PX - 8;
    const height = Math.max(this.#barPx, level * room);
    const x = this.#x(middle_ms) - this.#barPx / 2;
    const y =
      lane === "you" ? this.#height / 2 - CORRIDOR_PX - height : this.#height / 2 + CORRIDOR_PX;
    this.#context.beginPath();
    this.#context.roundRect(x, y, this.#barPx, height, this.#barPx / 2);
    this.#context.fill();
  }

  /**
   * @param {string} colour
   * @param {number} alpha
   */
  #fill(colour, alpha) {
    this.#context.globalAlpha = Math.max(0, alpha);
    this.#context.fillStyle = colour;
  }
}

/**
 * @param {number[]} levels
 * @param {number} bin
 */
function loudest(levels, bin) {
  return Math.max(...levels.slice(bin * LEVELS_PER_BIN, (bin + 1) * LEVELS_PER_BIN));
}

/**
 * @param {Element} element
 * @returns {Palette}
 */
function readPalette(element) {
  const style = getComputedStyle(element);
  /** @param {string} name */
  const colour = (name) => style.getPropertyValue(`--${name}`).trim();
  return {
    you: colour("you"),
    duologue: colour("duologue"),
    ink: colour("ink"),
    muted: colour("muted"),
    line: colour("line"),
    cut: colour("cut"),
    paper: colour("paper"),
  };
}
