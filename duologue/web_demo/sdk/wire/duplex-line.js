/**
 * The duplex dialect on top of another line: numbered events, each acknowledged and none taken
 * twice. Knows no event but its envelope.
 */

/** @typedef {import("./line.js").Line} Line */
/** @typedef {import("./line.js").RealtimeEvent} RealtimeEvent */
/** @typedef {import("./line.js").Closing} Closing */

/** @implements {Line} */
export class DuplexLine {
  #line;
  #lastSeq = 0;

  onOpen = () => {};
  /** @type {(event: RealtimeEvent) => void} */
  onEvent = () => {};
  /** @type {(closing: Closing) => void} */
  onClosed = () => {};

  /** @param {import("./line.js").Line} line */
  constructor(line) {
    this.#line = line;
    line.onOpen = () => this.onOpen();
    line.onClosed = (closing) => this.onClosed(closing);
    line.onEvent = (event) => this.#receive(event);
  }

  /**
   * @param {URL} url
   * @param {string} key
   */
  connect(url, key) {
    this.#lastSeq = 0;
    this.#line.connect(url, key);
  }

  /** @param {RealtimeEvent} event */
  send(event) {
    this.#line.send(event);
  }

  close() {
    this.#line.send({ type: "session.close", reason: "hung up" });
    this.#line.close();
  }

  /** @param {RealtimeEvent} event */
  #receive(event) {
    const seq = event.server_event_seq;
    if (Number.isInteger(seq)) {
      if (seq <= this.#lastSeq) return;
      this.#lastSeq = seq;
      this.#line.send({ type: "session.event_ack", server_event_seq: seq });
    }
    this.onEvent(event);
  }
}
