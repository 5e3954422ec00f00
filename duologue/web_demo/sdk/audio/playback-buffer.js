/**
 * What is still to be played: a bounded queue of answers, and the exact count of samples that each
 * of them has had played. Knows no clock and no Web Audio; the worklet asks it for samples.
 */

/**
 * @typedef {object} Track one answer in the queue
 * @property {string} id
 * @property {number} queuedSamples
 * @property {number} playedSamples
 * @property {boolean} isComplete no more audio will come
 * @property {boolean} ranDry it has waited for audio at least once
 */

/**
 * @typedef {object} Played
 * @property {string} id
 * @property {number} playedSamples
 * @property {number} discardedSamples
 */

/** @typedef {{ type: "started" | "finished", id: string, playedSamples: number }} TrackEvent */

/** Audio that must wait before an answer starts: little at first, more once the network stutters. */
const MIN_START_SAMPLES = 0.04 * 24000;
const MAX_START_SAMPLES = 0.4 * 24000;
const START_STEP_SAMPLES = 0.06 * 24000;

/** Where audio stops in mid-wave, the last value fades by this factor a sample: no click. */
const RELEASE = 0.97;

export class PlaybackBuffer {
  #ring;
  #read = 0;
  #length = 0;
  /** @type {Track[]} */
  #tracks = [];
  #isPlaying = false;
  #startSamples = MIN_START_SAMPLES;
  #lastValue = 0;

  /** @param {number} capacitySamples */
  constructor(capacitySamples) {
    this.#ring = new Int16Array(capacitySamples);
  }

  get queuedSamples() {
    return this.#length;
  }

  get startSamples() {
    return this.#startSamples;
  }

  /** The answer that is playing or waiting to. */
  get current() {
    return this.#tracks.at(0);
  }

  /**
   * @param {string} id
   * @param {Int16Array} pcm
   * @returns {number} samples refused because the buffer is full
   */
  append(id, pcm) {
    const track = this.#track(id);
    const accepted = Math.min(pcm.length, this.#ring.length - this.#length);
    const write = (this.#read + this.#length) % this.#ring.length;
    const beforeWrap = Math.min(accepted, this.#ring.length - write);
    this.#ring.set(pcm.subarray(0, beforeWrap), write);
    this.#ring.set(pcm.subarray(beforeWrap, accepted), 0);
    this.#length += accepted;
    track.queuedSamples += accepted;
    return pcm.length - accepted;
  }

  /** @param {string} id */
  complete(id) {
    const track = this.#tracks.find((candidate) => candidate.id === id);
    if (track) track.isComplete = true;
  }

  /**
   * Forget everything that has not been played.
   * @returns {Played[]} the answers that were in the queue, with what each had played
   */
  flush() {
    const cut = this.#tracks.map(({ id, playedSamples, queuedSamples }) => ({
      id,
      playedSamples,
      discardedSamples: queuedSamples,
    }));
    this.#tracks = [];
    this.#length = 0;
    this.#isPlaying = false;
    return cut;
  }

  /**
   * @param {Float32Array} output filled completely
   * @returns {TrackEvent[]}
   */
  render(output) {
    /** @type {TrackEvent[]} */
    const events = [];
    let at = 0;
    while (at < output.length) {
      const track = this.#tracks.at(0);
      if (!track || !this.#mayPlay(track)) break;
      const count = Math.min(output.length - at, track.queuedSamples);
      if (count === 0 && !track.isComplete) {
        this.#runDry(track);
        break;
      }
      if (count > 0 && track.playedSamples === 0) events.push(event("started", track));
      this.#copy(output, at, count);
      track.queuedSamples -= count;
      track.playedSamples += count;
      at += count;
      if (track.queuedSamples > 0 || !track.isComplete) continue;
      this.#isPlaying = false;
      this.#tracks.shift();
      this.#relax(track);
      events.push(event("finished", track));
    }
    this.#release(output, at);
    return events;
  }

  /**
   * @param {string} id
   * @returns {Track}
   */
  #track(id) {
    const known = this.#tracks.find((candidate) => candidate.id === id);
    if (known) return known;
    const track = { id, queuedSamples: 0, playedSamples: 0, isComplete: false, ranDry: false };
    this.#tracks.push(track);
    return track;
  }

  /** @param {Track} track */
  #mayPlay(track) {
    if (track.isComplete || track.queuedSamples >= this.#startSamples) this.#isPlaying = true;
    return this.#isPlaying;
  }

  /** @param {Track} track */
  #runDry(track) {
    this.#isPlaying = false;
    track.ranDry = true;
    this.#startSamples = Math.min(MAX_START_SAMPLES, this.#startSamples + START_STEP_SAMPLES);
  }

  /** @param {Track} track */
  #relax(track) {
    if (track.ranDry) return;
    this.#startSamples = Math.max(MIN_START_SAMPLES, this.#startSamples - START_STEP_SAMPLES / 2);
  }

  /**
   * @param {Float32Array} output
   * @param {number} at
   * @param {number} count
   */
  #copy(output, at, count) {
    for (let i = 0; i < count; i += 1) {
      output[at + i] = this.#ring[this.#read] / 32768;
      this.#read = (this.#read + 1) % this.#ring.length;
    }
    this.#length -= count;
    if (count > 0) this.#lastValue = output[at + count - 1];
  }

  /**
   * @param {Float32Array} output
   * @param {number} from
   */
  #release(output, from) {
    for (let i = from; i < output.length; i += 1) {
      this.#lastValue = Math.abs(this.#lastValue) < 1e-5 ? 0 : this.#lastValue * RELEASE;
      output[i] = this.#lastValue;
    }
  }
}

/**
 * @param {"started" | "finished"} type
 * @param {Track} track
 * @returns {TrackEvent}
 */
function event(type, track) {
  return { type, id: track.id, playedSamples: track.playedSamples };
}
