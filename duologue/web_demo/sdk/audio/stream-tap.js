/**
 * Listens in on a stream: 40 ms chunks of 24 kHz PCM, with the time at which each began.
 * Knows not whose stream it is.
 */

const CHUNK_MS = 40;

export class StreamTap {
  /** @type {AudioContext | null} */
  #context = null;
  /** @type {AudioWorkletNode | null} */
  #node = null;
  /** @type {MediaStreamAudioSourceNode | null} */
  #source = null;

  /** @type {(pcm: Int16Array, startedAt_ms: number) => void} */
  onChunk = () => {};
  /** @type {(isSuspended: boolean) => void} */
  onSuspended = () => {};

  /**
   * Call it in the handler of a click. The context keeps the device's own rate, because Firefox
   * joins a microphone to no other; the worklet converts.
   */
  async open() {
    if (this.#node) return;
    const context = new AudioContext({ latencyHint: "interactive" });
    this.#context = context;
    context.onstatechange = () => {
      if (context.state !== "closed") this.onSuspended(context.state !== "running");
    };
    void context.resume();
    await context.audioWorklet.addModule(new URL("./capture-worklet.js", import.meta.url));
    if (this.#context !== context) return; // closed meanwhile
    const node = new AudioWorkletNode(context, "capture", { outputChannelCount: [1] });
    node.port.onmessage = ({ data }) => this.#deliver(data.pcm, data.endedAt_s);
    // Its output is silence; a node that leads nowhere is not run by every browser.
    node.connect(context.destination);
    this.#node = node;
  }

  /** @param {MediaStream | null} stream another one in place of the last */
  listen(stream) {
    this.#source?.disconnect();
    this.#source = null;
    if (!stream || !this.#context || !this.#node) return;
    this.#source = new MediaStreamAudioSourceNode(this.#context, { mediaStream: stream });
    this.#source.connect(this.#node);
  }

  resume() {
    void this.#context?.resume();
  }

  close() {
    this.listen(null);
    if (this.#node) this.#node.port.onmessage = null;
    void this.#context?.close();
    this.#context = null;
    this.#node = null;
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
