/**
 * What the person typed as key, made fit for a call: an API key is exchanged for a client secret,
 * which expires, and opens nothing but calls.
 */

import { CallError } from "./sdk/duologue.js";
import { refusalProblem } from "./sdk/wire/problems.js";

/**
 * @param {string} typed empty for none
 * @param {URL} baseUrl of the API
 * @param {typeof fetch} ask
 * @returns {Promise<string>}
 * @throws {CallError} where the server gives none
 */
export async function secretFor(typed, baseUrl, ask) {
  if (!typed || typed.startsWith("ek_")) return typed;
  const url = `${baseUrl.href.replace(/\/$/, "")}/realtime/client_secrets`;
  const answer = await ask(url, {
    method: "POST",
    headers: { Authorization: `Bearer ${typed}`, "Content-Type": "application/json" },
    body: "{}",
  }).catch(() => null);
  const body = await answer?.json().catch(() => null);
  if (answer?.ok) return body.value;
  const { code = "", message = "" } = body?.error ?? {};
  throw new CallError(refusalProblem({ status: answer?.status ?? 0, code, message, retryAfter_s: 0 }));
}
