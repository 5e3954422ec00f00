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

  /** @param {{ isDuplex: boolean }} options */
  constructor({ isDuplex }) {
    this.line = isDuplex ? new DuplexLine(new WebSocketLine()) : new WebSocketLine();
    this.isDuplex = isDuplex;
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
    this.line.close();
    this.sound.close();
  }
}
