/**
 * How the server learns what was heard: three ways, one for each kind of line. Pure.
 */

import { SAMPLE_RATE_HZ } from "../audio/pcm16.js";

/** @typedef {import("./answer.js").Answer} Answer */
/** @typedef {(event: import("../wire/line.js").RealtimeEvent) => void} Send */

/**
 * @typedef {object} HeardReports
 * @property {boolean} isServerPlaying the sound comes from the server at the pace of its playing
 * @property {(answer: Answer, isOver: boolean) => void} played some of it; sends what is due
 * @property {(answer: Answer) => void} cut it will not be played any further
 * @property {() => void} silence the person interrupts by hand
 * @property {(itemId: string) => void} truncated the server has cut an item to what was heard
 */

const SAMPLES_PER_MS = SAMPLE_RATE_HZ / 1000;
const ACK_EVERY_MS = 200;

/** @param {Answer} answer */
const playedMs = (answer) => Math.floor(answer.heardSamples / SAMPLES_PER_MS);

/**
 * The Realtime API over WebSocket: what was heard is said where it is cut.
 * @implements {HeardReports}
 */
export class Truncations {
  #send;
  isServerPlaying = false;

  /** @param {Send} send */
  constructor(send) {
    this.#send = send;
  }

  played() {}

  /** @param {Answer} answer */
  cut(answer) {
    if (answer.receivedSamples === 0) return;
    this.#send({
      type: "conversation.item.truncate",
      item_id: answer.id,
      content_index: answer.contentIndex,
      audio_end_ms: playedMs(answer),
    });
  }

  silence() {}

  truncated() {}
}

/**
 * The duplex dialect: what was heard is acknowledged all along.
 * @implements {HeardReports}
 */
export class PlaybackAcks {
  #send;
  #acknowledged = { id: "", played_ms: 0 };
  isServerPlaying = false;

  /** @param {Send} send */
  constructor(send) {
    this.#send = send;
  }

  /**
   * @param {Answer} answer
   * @param {boolean} isOver
   */
  played(answer, isOver) {
    const played_ms = playedMs(answer);
    const before_ms = this.#acknowledged.id === answer.id ? this.#acknowledged.played_ms : 0;
    if (played_ms - before_ms < ACK_EVERY_MS && !isOver) return;
    this.#acknowledged = { id: answer.id, played_ms };
    this.#send({ type: "playback.ack", item_id: answer.id, played_ms });
  }

  /** @param {Answer} answer */
  cut(answer) {
    if (answer.receivedSamples === 0) return;
    const played_ms = playedMs(answer);
    this.#send({ type: "playback.ack", item_id: answer.id, played_ms, truncate: true });
  }

  silence() {}

  truncated() {}
}

/**
 * WebRTC: the server knows, and is asked what the words were.
 * @implements {HeardReports}
 */
export class ServerPlays {
  #send;
  isServerPlaying = true;

  /** @param {Send} send */
  constructor(send) {
    this.#send = send;
  }

  played() {}

  cut() {}

  silence() {
    this.#send({ type: "output_audio_buffer.clear" });
  }

  /** @param {string} itemId */
  truncated(itemId) {
    this.#send({ type: "conversation.item.retrieve", item_id: itemId });
  }
}
