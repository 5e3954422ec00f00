/**
 * Finds out why a call was refused. A browser hides the answer to a failed WebSocket handshake, so
 * the same address is asked again as plain HTTP. Knows no words for people: see problems.js.
 */

/**
 * @typedef {object} Refusal
 * @property {number} status 0 when nothing answered
 * @property {string} code the server's name for the error, empty for none
 * @property {string} message the server's own words, empty for none
 * @property {number} retryAfter_s 0 when the server did not say
 */

/** The browser keeps its answers from this page: the server's word for it. */
export const NOT_ALLOWED = "origin_not_allowed";

/** What a WebSocket route answers to an ordinary request that it would have let in. */
const LET_IN = [400, 405, 426];
const TIMEOUT_MS = 4000;

/**
 * @param {URL} url of the call, over http
 * @param {string} apiKey empty for none
 * @param {typeof fetch} ask
 * @returns {Promise<Refusal>}
 */
export async function diagnose(url, apiKey, ask) {
  /** @type {Record<string, string>} */
  const headers = apiKey ? { Authorization: `Bearer ${apiKey}` } : {};
  const call = await answer(url, headers, ask);
  if (call.status === 0 && (await isThere(url, ask))) return { ...call, status: 403, code: NOT_ALLOWED };
  const isRefused = call.status === 0 || (call.status >= 400 && !LET_IN.includes(call.status));
  if (isRefused) return call;
  const ready = await answer(new URL("../ready", url), {}, ask);
  if (ready.status === 503) return { ...ready, code: ready.code || "server_not_ready" };
  return { ...call, message: "" }; // its words are about the question, not about the call
}

/**
 * @param {URL} url
 * @param {Record<string, string>} headers
 * @param {typeof fetch} ask
 * @returns {Promise<Refusal>}
 */
async function answer(url, headers, ask) {
  try {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const response = await ask(url, { headers, cache: "no-store", signal });
    const body = await response.json().catch(() => ({}));
    return {
      status: response.status,
      code: body.error?.code ?? "",
      message: body.error?.message ?? "",
      retryAfter_s: Number(response.headers.get("Retry-After")) || 0,
    };
  } catch {
    return { status: 0, code: "", message: "", retryAfter_s: 0 };
  }
}

/**
 * @param {URL} url
 * @param {typeof fetch} ask
 * @returns {Promise<boolean>} something answers, though the browser does not show what
 */
async function isThere(url, ask) {
  try {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    return (await ask(url, { mode: "no-cors", cache: "no-store", signal })).type === "opaque";
  } catch {
    return false;
  }
}
