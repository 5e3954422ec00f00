/**
 * The loudspeaker of a call whose sound comes as a media track: the browser plays it, and levels
 * are read beside it. Knows nothing of answers.
 */

import { Playback } from "./playback.js";
import { StreamTap } from "./stream-tap.js";

export class TrackPlayer {
  #element = new Audio();
  #tap = new StreamTap();

  /** @type {(pcm: Int16Array, startedAt_ms: number) => void} what the track brings */
  onChunk = () => {};
  /** @type {(isSuspended: boolean) => void} */
  onSuspended = () => {};

  constructor() {
    this.#tap.onChunk = (pcm, at_ms) => this.onChunk(pcm, at_ms);
    this.#tap.onSuspended = (isSuspended) => this.onSuspended(isSuspended);
  }

  /** Call it in the handler of a click: browsers start sound for nothing less. */
  open() {
    return this.#tap.open();
  }

  /** @param {MediaStream} stream */
  play(stream) {
    this.#element.srcObject = stream; // first: Chromium taps no remote track that nobody plays
    this.#tap.listen(stream);
    this.resume();
  }

  /** @param {boolean} isSilent what is still on its way is not heard */
  setSilent(isSilent) {
    this.#element.muted = isSilent;
  }

  /** @param {number} volume 0 to 1 */
  setVolume(volume) {
    this.#element.volume = volume;
  }

  /** @param {string} speakerId empty for the system's own choice */
  async chooseSpeaker(speakerId) {
    const element = /** @type {any} */ (this.#element);
    if (!Playback.canChooseSpeaker() || !element.setSinkId || element.sinkId === speakerId) return;
    await element.setSinkId(speakerId);
  }

  resume() {
    this.#tap.resume();
    if (this.#element.srcObject) this.#element.play().catch(() => this.onSuspended(true));
  }

  close() {
    this.#element.pause();
    this.#element.srcObject = null;
    this.#element.muted = false;
    this.#tap.close();
  }
}
