/**
 * A line of one WebSocket that carries Realtime events as JSON, both ways.
 * Knows the transport and no event but its envelope.
 */

const SUBPROTOCOL = "realtime";
const KEY_SUBPROTOCOL = "openai-insecure-api-key.";
const OPEN_TIMEOUT_MS = 10_000;
/** Five seconds of base64 audio: a line this far behind cannot hold a conversation. */
const MAX_BACKLOG_BYTES = 320_000;

/** @typedef {import("./line.js").Line} Line */
/** @typedef {import("./line.js").RealtimeEvent} RealtimeEvent */
/** @typedef {import("./line.js").Closing} Closing */

/** @implements {Line} */
export class WebSocketLine {
  /** @type {WebSocket | null} */
  #socket = null;
  #isStalled = false;
  #sentEvents = 0;

  /** @type {() => void} */
  onOpen = () => {};
  /** @type {(event: RealtimeEvent) => void} */
  onEvent = () => {};
  /** @type {(closing: Closing) => void} Called once; not after `close`. */
  onClosed = () => {};

  /**
   * @param {URL} url over http
   * @param {string} key empty for none
   */
  connect(url, key) {
    const address = new URL(url);
    address.protocol = address.protocol.replace("http", "ws");
    const protocols = key ? [SUBPROTOCOL, KEY_SUBPROTOCOL + key] : [SUBPROTOCOL];
    const socket = new WebSocket(address, protocols);
    this.#socket = socket;
    this.#isStalled = false;
    let wasOpen = false;
    const timer = setTimeout(() => socket.close(), OPEN_TIMEOUT_MS);
    socket.onopen = () => {
      clearTimeout(timer);
      wasOpen = true;
      this.onOpen();
    };
    socket.onmessage = ({ data }) => {
      if (typeof data === "string") this.onEvent(JSON.parse(data));
    };
    socket.onclose = ({ code, reason }) => {
      clearTimeout(timer);
      if (this.#socket !== socket) return;
      this.#socket = null;
      this.onClosed({ code, reason, wasOpen, wasStalled: this.#isStalled });
    };
  }

  /**
   * @param {RealtimeEvent} event
   */
  send(event) {
    const socket = this.#socket;
    if (!socket || socket.readyState !== WebSocket.OPEN) return;
    if (socket.bufferedAmount > MAX_BACKLOG_BYTES) {
      this.#isStalled = true;
      socket.close();
      return;
    }
    this.#sentEvents += 1;
    socket.send(JSON.stringify({ event_id: `event_${this.#sentEvents}`, ...event }));
  }

  close() {
    const socket = this.#socket;
    this.#socket = null;
    socket?.close(1000);
  }
}
