/**
 * The wire: one WebSocket that carries Realtime events as JSON, both ways.
 * Knows the transport and no event but its envelope.
 */

const SUBPROTOCOL = "realtime";
const KEY_SUBPROTOCOL = "openai-insecure-api-key.";
const OPEN_TIMEOUT_MS = 10_000;
/** Five seconds of base64 audio: a line this far behind cannot hold a conversation. */
const MAX_BACKLOG_BYTES = 320_000;

/** @typedef {{ type: string, [field: string]: any }} RealtimeEvent */

/**
 * @typedef {object} Closing
 * @property {number} code
 * @property {string} reason
 * @property {boolean} wasOpen false when the server never accepted the call
 * @property {boolean} wasStalled the line was given up because too much waited to be sent
 */

/**
 * @param {string} baseUrl address of the page: the API stands beside its folder
 * @param {string} model empty for the server's own choice
 * @returns {URL} the address over http; `connect` turns it into ws
 */
export function realtimeUrl(baseUrl, model) {
  const url = new URL("../v1/realtime", baseUrl);
  if (model) url.searchParams.set("model", model);
  return url;
}

export class Connection {
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
   * @param {URL} url
   * @param {string} apiKey empty for none
   */
  connect(url, apiKey) {
    const address = new URL(url);
    address.protocol = address.protocol.replace("http", "ws");
    const protocols = apiKey ? [SUBPROTOCOL, KEY_SUBPROTOCOL + apiKey] : [SUBPROTOCOL];
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
