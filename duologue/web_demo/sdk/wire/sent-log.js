/**
 * What was sent and the server is not known to have, in order: for the next line. Audio is told by
 * its place, all else by its id. Pure: knows no line, and no event but its envelope.
 */

import { SAMPLE_RATE_HZ } from "../audio/pcm16.js";

/** @typedef {import("./line.js").RealtimeEvent} RealtimeEvent */

/** @typedef {{ event: RealtimeEvent, end: number | null }} Entry end: the place behind audio */

/** Twenty seconds: what a server keeps a session for is longer, and few outages are. */
export const KEPT_SAMPLES = 20 * SAMPLE_RATE_HZ;
const KEPT_EVENTS = 512;
/** A longer hole in the audio is refused by servers. */
const LONGEST_HOLE_SAMPLES = 10 * SAMPLE_RATE_HZ;
/** Worth nothing later: what they say, or show, comes anew. */
const MOMENTARY = new Set(["session.event_ack", "session.heartbeat", "video.frame"]);

export class SentLog {
  /** @type {Entry[]} */
  #entries = [];
  #heldSamples = 0;
  #events = 0;
  /** Place of the next sample that is said, and how much of what was said has no place any more. */
  #next = 0;
  #shift = 0;
  #ids = 0;

  /** Audio that was dropped since `takeDropped` was asked. */
  #dropped = 0;

  get length() {
    return this.#entries.length;
  }

  /**
   * @param {RealtimeEvent} event
   * @returns {RealtimeEvent} as it is to be sent, with an id, and audio with its place
   */
  note(event) {
    this.#ids += 1;
    const named = { event_id: `client_${this.#ids}`, ...event };
    if (MOMENTARY.has(event.type)) return named;
    if (event.type !== "input_audio_buffer.append") {
      this.#entries.push({ event: named, end: null });
      this.#events += 1;
      if (this.#events > KEPT_EVENTS) this.#dropOldest(false);
      return named;
    }
    const samples = samplesIn(event.audio);
    const placed = { ...named, start_sample: this.#next };
    this.#next += samples;
    this.#entries.push({ event: placed, end: this.#next });
    this.#heldSamples += samples;
    while (this.#heldSamples > KEPT_SAMPLES) this.#dropped += this.#dropOldest(true);
    return placed;
  }

  /** @param {number} next the server has the audio before this place, and all that was before it */
  confirmAudio(next) {
    const shifted = next + this.#shift;
    let confirmed = 0;
    for (const [index, { end }] of this.#entries.entries()) {
      if (end === null) continue;
      if (end > shifted) break;
      confirmed = index + 1;
    }
    this.#forget(confirmed);
  }

  /** @param {string} id of an event that the server has, and all that was before it */
  confirmEvent(id) {
    const index = this.#entries.findLastIndex(({ event }) => event.event_id === id);
    this.#forget(index + 1);
  }

  /** The server has the first event: the session has come of it. */
  confirmFirst() {
    this.#forget(Math.min(1, this.#entries.length));
  }

  /**
   * @param {number} next the first sample that the server does not have
   * @returns {RealtimeEvent[]} all that is to be sent again
   */
  rest(next) {
    const first = this.#entries.find(({ end }) => end !== null);
    if (first) {
      const hole = first.event.start_sample - this.#shift - next;
      // What is gone is gone in any case: after a hole that is too long, the rest moves up.
      if (hole > LONGEST_HOLE_SAMPLES) this.#shift += hole - LONGEST_HOLE_SAMPLES;
    }
    return this.#entries.map(({ event }) => this.shifted(event));
  }

  /**
   * @param {RealtimeEvent} event
   * @returns {RealtimeEvent} with its place as the server counts
   */
  shifted(event) {
    if (this.#shift === 0 || event.start_sample === undefined) return event;
    return { ...event, start_sample: event.start_sample - this.#shift };
  }

  /** @returns {number} milliseconds of audio that were dropped since this was asked */
  takeDropped_ms() {
    const dropped = this.#dropped;
    this.#dropped = 0;
    return Math.round((1000 * dropped) / SAMPLE_RATE_HZ);
  }

  /** @param {boolean} isAudio */
  #dropOldest(isAudio) {
    const index = this.#entries.findIndex(({ end }) => (end !== null) === isAudio);
    const [entry] = this.#entries.splice(index, 1);
    return this.#release(entry);
  }

  /** @param {number} count */
  #forget(count) {
    for (const entry of this.#entries.splice(0, count)) this.#release(entry);
  }

  /** @param {Entry} entry */
  #release({ event, end }) {
    if (end === null) {
      this.#events -= 1;
      return 0;
    }
    const samples = end - event.start_sample;
    this.#heldSamples -= samples;
    return samples;
  }
}

/** @param {string} audio 16-bit PCM in base64 */
function samplesIn(audio) {
  const padding = audio.endsWith("==") ? 2 : audio.endsWith("=") ? 1 : 0;
  return Math.floor(((audio.length / 4) * 3 - padding) / 2);
}
