/**
 * The speaker: answers go in as PCM, sound comes out, positions come back.
 * Knows answers by their ids only.
 */

import { SAMPLE_RATE_HZ } from "./pcm16.js";

/** @typedef {import("./playback-buffer.js").Played} Played */

/**
 * @typedef {{ type: "append", id: string, pcm: Int16Array }
 *   | { type: "complete", id: string }
 *   | { type: "flush", order: number }} PlaybackOrder
 */

/**
 * @typedef {object} PlaybackReport
 * @property {"started" | "position" | "finished"} type
 * @property {string} id
 * @property {number} playedSamples handed to the device so far
 * @property {number} at_ms when the last of them is audible, on the clock of performance.now()
 */

export class Playback {
  /** @type {AudioContext | null} */
  #context = null;
  /** @type {AudioWorkletNode | null} */
  #node = null;
  /** @type {GainNode | null} */
  #gain = null;
  #volume = 1;
  #flushes = 0;
  /** @type {Map<number, (played: Played[]) => void>} */
  #waiting = new Map();

  /** @type {(report: PlaybackReport) => void} */
  onReport = () => {};
  /** @type {(refusedSamples: number) => void} */
  onFull = () => {};
  /** @type {(isSuspended: boolean) => void} */
  onSuspended = () => {};

  static canChooseSpeaker() {
    return "AudioContext" in window && "setSinkId" in AudioContext.prototype;
  }

  /**
   * Call it in the handler of a click: browsers start sound for nothing less. The context runs at
   * the wire's rate, so that a played sample is a wire sample; the browser converts to the device.
   */
  async open() {
    const context = new AudioContext({ sampleRate: SAMPLE_RATE_HZ, latencyHint: "interactive" });
    this.#context = context;
    context.onstatechange = () => {
      if (context.state !== "closed") this.onSuspended(context.state !== "running");
    };
    void context.resume();
    await context.audioWorklet.addModule(new URL("./playback-worklet.js", import.meta.url));
    const node = new AudioWorkletNode(context, "playback", {
      numberOfInputs: 0,
      outputChannelCount: [1],
    });
    node.port.onmessage = ({ data }) => this.#receive(data);
    this.#gain = new GainNode(context, { gain: this.#volume });
    node.connect(this.#gain).connect(context.destination);
    this.#node = node;
  }

  /**
   * @param {string} id
   * @param {Int16Array} pcm handed over: the caller must not use it afterwards
   */
  append(id, pcm) {
    this.#order({ type: "append", id, pcm }, [pcm.buffer]);
  }

  /** @param {string} id no more audio will come for this answer */
  complete(id) {
    this.#order({ type: "complete", id });
  }

  /**
   * Silence at once. Resolves with what each queued answer had played, to the sample.
   * @returns {Promise<Played[]>}
   */
  flush() {
    if (!this.#node) return Promise.resolve([]);
    const order = this.#flushes;
    this.#flushes += 1;
    return new Promise((resolve) => {
      this.#waiting.set(order, resolve);
      this.#order({ type: "flush", order });
    });
  }

  /** @param {number} volume 0 to 1 */
  setVolume(volume) {
    this.#volume = volume;
    // Short enough to feel immediate, long enough not to crackle while a slider moves.
    this.#gain?.gain.setTargetAtTime(volume, 0, 0.015);
  }

  /** @param {string} speakerId empty for the system's own choice */
  async chooseSpeaker(speakerId) {
    const context = /** @type {any} */ (this.#context);
    if (!context || !Playback.canChooseSpeaker() || context.sinkId === speakerId) return;
    await context.setSinkId(speakerId);
  }

  resume() {
    void this.#context?.resume();
  }

  close() {
    for (const resolve of this.#waiting.values()) resolve([]);
    this.#waiting.clear();
    if (this.#node) this.#node.port.onmessage = null; // reports may still be on their way
    void this.#context?.close();
    this.#context = null;
    this.#node = null;
    this.#gain = null;
  }

  /**
   * @param {PlaybackOrder} order
   * @param {Transferable[]} [handedOver]
   */
  #order(order, handedOver = []) {
    this.#node?.port.postMessage(order, handedOver);
  }

  /** @param {any} message */
  #receive(message) {
    if (message.type === "flushed") {
      this.#waiting.get(message.order)?.(message.played);
      this.#waiting.delete(message.order);
    } else if (message.type === "full") {
      this.onFull(message.refusedSamples);
    } else {
      this.onReport({ ...message, at_ms: this.#audibleAt(message.at_s) });
    }
  }

  /** @param {number} context_s */
  #audibleAt(context_s) {
    const context = /** @type {AudioContext} */ (this.#context);
    const latency_s = context.outputLatency || context.baseLatency || 0;
    return performance.now() + 1000 * (context_s - context.currentTime + latency_s);
  }
}
