/**
 * The microphone: opens a device, hands out its stream and 40 ms chunks of 24 kHz PCM.
 * Knows nothing of the wire; failures leave as the browser's own errors.
 */

import { StreamTap } from "./stream-tap.js";

/**
 * @typedef {object} MicrophoneOptions
 * @property {string} deviceId empty for the system's own choice
 * @property {boolean} echoCancellation
 * @property {boolean} noiseSuppression
 * @property {boolean} autoGainControl
 */

export class Microphone {
  #tap = new StreamTap();
  /** @type {MediaStream | null} */
  #stream = null;
  #isMuted = false;
  /** Grows with each opening and closing, so that what an older one awaited is dropped. */
  #attempt = 0;

  /** @type {(pcm: Int16Array, startedAt_ms: number) => void} */
  onChunk = () => {};
  /** @type {(track: MediaStreamTrack) => void} there is another one now */
  onTrack = () => {};
  /** The device went away in mid-call (unplugged, or taken by the system). */
  onLost = () => {};

  constructor() {
    this.#tap.onChunk = (pcm, at_ms) => this.onChunk(pcm, at_ms);
  }

  /** @returns {MediaStreamTrack | null} */
  get track() {
    return this.#stream?.getAudioTracks().at(0) ?? null;
  }

  /**
   * Call it in the handler of a click.
   * @param {MicrophoneOptions} options
   */
  async open(options) {
    this.#attempt += 1;
    const attempt = this.#attempt;
    const opening = this.#tap.open();
    opening.catch(() => {}); // the permission is asked for meanwhile; thrown below
    const stream = await request(options);
    if (attempt !== this.#attempt) {
      stop(stream); // closed while the person was being asked for permission
      return;
    }
    this.#replaceStream(stream);
    await opening;
    if (attempt !== this.#attempt) return;
    this.#tap.listen(stream);
  }

  /**
   * Muted, the microphone delivers silence, so that the other side's clock goes on.
   * @param {boolean} isMuted
   */
  setMuted(isMuted) {
    this.#isMuted = isMuted;
    if (this.track) this.track.enabled = !isMuted;
  }

  resume() {
    this.#tap.resume();
  }

  close() {
    this.#attempt += 1;
    this.#replaceStream(null);
    this.#tap.close();
  }

  /** @param {MediaStream | null} stream */
  #replaceStream(stream) {
    this.#tap.listen(null);
    if (this.#stream) stop(this.#stream);
    this.#stream = stream;
    const track = this.track;
    if (!track) return;
    track.enabled = !this.#isMuted;
    track.onended = () => this.onLost();
    this.onTrack(track);
  }
}

/**
 * @param {MicrophoneOptions} options
 * @returns {Promise<MediaStream>}
 */
async function request({ deviceId, ...processing }) {
  const audio = { ...processing, channelCount: 1 };
  try {
    const device = deviceId ? { deviceId: { exact: deviceId } } : {};
    return await navigator.mediaDevices.getUserMedia({ audio: { ...audio, ...device } });
  } catch (error) {
    const isGone = error instanceof Error && error.name === "OverconstrainedError";
    if (!isGone || !deviceId) throw error;
    return navigator.mediaDevices.getUserMedia({ audio }); // the chosen one is no longer there
  }
}

/** @param {MediaStream} stream */
function stop(stream) {
  for (const track of stream.getTracks()) {
    track.onended = null;
    track.stop();
  }
}
