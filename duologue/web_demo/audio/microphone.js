/**
 * The microphone: opens a device, hands out 40 ms chunks of 24 kHz PCM.
 * Knows nothing of the wire; failures leave as the browser's own errors.
 */

/**
 * @typedef {object} MicrophoneOptions
 * @property {string} deviceId empty for the system's own choice
 * @property {boolean} echoCancellation
 * @property {boolean} noiseSuppression
 * @property {boolean} autoGainControl
 */

const CHUNK_MS = 40;

export class Microphone {
  /** @type {AudioContext | null} */
  #context = null;
  /** @type {AudioWorkletNode | null} */
  #node = null;
  /** @type {MediaStream | null} */
  #stream = null;
  /** @type {MediaStreamAudioSourceNode | null} */
  #source = null;
  #isMuted = false;

  /** @type {(pcm: Int16Array, startedAt_ms: number) => void} */
  onChunk = () => {};
  /** The device went away in mid-call (unplugged, or taken by the system). */
  onLost = () => {};

  get isOpen() {
    return this.#stream !== null;
  }

  /**
   * Call it in the handler of a click. The context keeps the device's own rate, because Firefox
   * joins a microphone to no other; the worklet converts.
   * @param {MicrophoneOptions} options
   */
  async open(options) {
    const context = this.#context ?? new AudioContext({ latencyHint: "interactive" });
    this.#context = context;
    void context.resume();
    const stream = await request(options);
    if (this.#context !== context) {
      stop(stream); // closed while the person was being asked for permission
      return;
    }
    this.#replaceStream(stream);
    if (!this.#node) {
      await context.audioWorklet.addModule(new URL("./capture-worklet.js", import.meta.url));
      this.#node = new AudioWorkletNode(context, "capture", { outputChannelCount: [1] });
      this.#node.port.onmessage = ({ data }) => this.#deliver(data.pcm, data.endedAt_s);
      // Its output is silence; a node that leads nowhere is not run by every browser.
      this.#node.connect(context.destination);
    }
    this.#source = new MediaStreamAudioSourceNode(context, { mediaStream: stream });
    this.#source.connect(this.#node);
  }

  /**
   * Muted, the microphone delivers silence, so that the other side's clock goes on.
   * @param {boolean} isMuted
   */
  setMuted(isMuted) {
    this.#isMuted = isMuted;
    for (const track of this.#stream?.getAudioTracks() ?? []) track.enabled = !isMuted;
  }

  resume() {
    void this.#context?.resume();
  }

  close() {
    this.#replaceStream(null);
    if (this.#node) this.#node.port.onmessage = null;
    void this.#context?.close();
    this.#context = null;
    this.#node = null;
  }

  /** @param {MediaStream | null} stream */
  #replaceStream(stream) {
    this.#source?.disconnect();
    this.#source = null;
    if (this.#stream) stop(this.#stream);
    this.#stream = stream;
    const track = stream?.getAudioTracks().at(0);
    if (!track) return;
    track.enabled = !this.#isMuted;
    track.onended = () => this.onLost();
  }

  /**
   * @param {Int16Array} pcm
   * @param {number} endedAt_s
   */
  #deliver(pcm, endedAt_s) {
    const context = /** @type {AudioContext} */ (this.#context);
    const age_ms = 1000 * (context.currentTime - endedAt_s);
    this.onChunk(pcm, performance.now() - age_ms - CHUNK_MS);
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
