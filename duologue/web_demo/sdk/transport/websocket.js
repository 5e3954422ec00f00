/**
 * A call over WebSocket: sound travels in events, so this side plays it and reports what was heard.
 */

import { Playback } from "../audio/playback.js";
import { PlaybackAcks, Truncations } from "../call/heard-reports.js";
import { DuplexLine } from "../wire/duplex-line.js";
import { realtimeUrl } from "../wire/line.js";
import { WebSocketLine } from "../wire/websocket-line.js";

/** @typedef {import("./transport.js").Transport} Transport */

/** @implements {Transport} */
export class WebSocketTransport {
  name = /** @type {const} */ ("websocket");
  sound = new Playback();
  speaker = this.sound;
  onFull = () => {};

  /** @type {DuplexLine | null} */
  #resumable = null;
  #online;

  /** @param {{ isDuplex: boolean }} options */
  constructor({ isDuplex }) {
    if (isDuplex) this.#resumable = new DuplexLine(() => new WebSocketLine());
    this.line = this.#resumable ?? new WebSocketLine();
    this.isDuplex = isDuplex;
    this.#online = () => this.#resumable?.hurry();
    /** @type {import("../call/heard-reports.js").Send} */
    const send = (event) => this.line.send(event);
    this.sound.onFull = () => this.onFull();
    this.heard = isDuplex ? new PlaybackAcks(send) : new Truncations(send);
  }

  /** @param {import("./transport.js").Listener} listener */
  listen(listener) {
    this.line.onEvent = (event) => listener.receive(event);
    this.sound.onReport = (report) => listener.played(report);
  }

  /** @param {import("./transport.js").Follower} follower */
  follow({ nextKey, reconnecting, reconnected }) {
    if (!this.#resumable) return;
    this.#resumable.nextKey = nextKey;
    this.#resumable.onReconnecting = reconnecting;
    this.#resumable.onReconnected = reconnected;
    globalThis.addEventListener("online", this.#online);
  }

  /**
   * @param {URL} baseUrl
   * @param {string} model
   * @param {string} key
   */
  connect(baseUrl, model, key) {
    this.line.connect(realtimeUrl(baseUrl, { model, isDuplex: this.isDuplex }), key);
  }

  setTrack() {}

  setOpen() {}

  close() {
    globalThis.removeEventListener("online", this.#online);
    this.line.close();
    this.sound.close();
  }
}
