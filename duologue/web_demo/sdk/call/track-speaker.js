/**
 * What is being heard of a call that the server plays, told in the words of a loudspeaker.
 *
 * Over WebRTC the server cuts sound into frames of 20 ms and sends each when it is due, so it knows
 * what was heard, and says when the sound of a response begins and ends. In between the position is
 * the time that has passed. Pure.
 */

import { SAMPLE_RATE_HZ } from "../audio/pcm16.js";

/** @typedef {import("../wire/line.js").RealtimeEvent} RealtimeEvent */
/** @typedef {import("../audio/playback.js").PlaybackReport} PlaybackReport */

/** Responses whose items are remembered. */
const MAX_RESPONSES = 32;

export class TrackSpeaker {
  #now;
  /** Spoken item of each of the latest responses. @type {Map<string, string>} */
  #items = new Map();
  /** @type {{ id: string, since_ms: number } | null} */
  #playing = null;
  /** @type {{ id: string, played_ms: number } | null} */
  #paused = null;

  /** @type {(report: PlaybackReport) => void} */
  onReport = () => {};
  /** @type {(isSilent: boolean) => void} what is still on its way must not be heard */
  onSilence = () => {};

  /** @param {() => number} now milliseconds */
  constructor(now) {
    this.#now = now;
  }

  /** @param {RealtimeEvent} event from the server */
  receive({ type, response_id, item_id, part }) {
    if (type === "response.content_part.added" && part?.type === "audio") {
      this.#items.set(response_id, item_id);
      const [oldest] = this.#items.keys();
      if (this.#items.size > MAX_RESPONSES) this.#items.delete(oldest);
    } else if (type === "output_audio_buffer.started") {
      this.onSilence(false);
      const id = this.#items.get(response_id) ?? "";
      const before_ms = this.#paused?.id === id ? this.#paused.played_ms : 0;
      this.#paused = null;
      this.#playing = { id, since_ms: this.#now() - before_ms };
      this.#report("started");
    } else if (type === "output_audio_buffer.stopped") {
      this.#report("finished");
      this.#playing = null;
    } else if (type === "output_audio_buffer.cleared") {
      this.#playing = null;
    }
  }

  /** Nothing comes for now; what is being heard may go on on another track. */
  pause() {
    if (!this.#playing) return;
    const { id, since_ms } = this.#playing;
    this.#paused = { id, played_ms: this.#now() - since_ms };
    this.#playing = null;
  }

  /** Time has passed. */
  tick() {
    this.#report("position");
  }

  append() {}

  complete() {}

  /** @returns {Promise<{ id: string, playedSamples: number }[]>} */
  async flush() {
    this.onSilence(true);
    const played = this.#playing;
    this.#playing = null;
    return played ? [{ id: played.id, playedSamples: this.#samples(played.since_ms) }] : [];
  }

  /** @param {PlaybackReport["type"]} type */
  #report(type) {
    if (!this.#playing) return;
    const { id, since_ms } = this.#playing;
    this.onReport({ type, id, playedSamples: this.#samples(since_ms), at_ms: this.#now() });
  }

  /** @param {number} since_ms */
  #samples(since_ms) {
    return Math.round(((this.#now() - since_ms) * SAMPLE_RATE_HZ) / 1000);
  }
}
