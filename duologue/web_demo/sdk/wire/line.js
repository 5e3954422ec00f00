/**
 * What every line to the server is, whichever way it goes, and where the server's doors are.
 */

/** @typedef {{ type: string, [field: string]: any }} RealtimeEvent */

/**
 * @typedef {object} Closing
 * @property {number} code of the WebSocket; 1006 for other lines, which have none
 * @property {string} reason
 * @property {boolean} wasOpen false when the server never accepted the call
 * @property {boolean} wasStalled the line was given up because too much waited to be sent
 * @property {import("./problems.js").Problem} [problem] where the line itself knows what is wrong
 * @property {string} [refusedWith] the server's own word for why it did not take an offer
 * @property {boolean} [isBlocked] the server would have taken the call; this kind of line does not
 *   get through, so another kind may
 */

/**
 * @typedef {object} Line
 * @property {() => void} onOpen
 * @property {(event: RealtimeEvent) => void} onEvent
 * @property {(closing: Closing) => void} onClosed Called once; not after `close`.
 * @property {(url: URL, key: string) => void} connect
 * @property {(event: RealtimeEvent) => void} send dropped where the line is not open
 * @property {() => void} close
 */

/**
 * @param {URL} baseUrl of the API, which ends in `/v1`
 * @param {{ model?: string, isDuplex?: boolean }} options model: empty for the server's own choice
 * @returns {URL} the address over http; a WebSocket turns it into ws
 */
export function realtimeUrl(baseUrl, { model = "", isDuplex = false } = {}) {
  const url = below(baseUrl, "realtime");
  if (isDuplex) {
    url.searchParams.set("duplex", "1");
    url.searchParams.set("autostart", "0");
  }
  if (model) url.searchParams.set("model", model);
  return url;
}

/**
 * @param {URL} baseUrl
 * @param {string} model
 * @returns {URL} where an offer is posted to
 */
export function callsUrl(baseUrl, model) {
  const url = below(baseUrl, "realtime/calls");
  if (model) url.searchParams.set("model", model);
  return url;
}

/**
 * @param {URL} baseUrl
 * @param {string} path
 */
function below(baseUrl, path) {
  const folder = new URL(baseUrl);
  if (!folder.pathname.endsWith("/")) folder.pathname += "/";
  return new URL(path, folder);
}
