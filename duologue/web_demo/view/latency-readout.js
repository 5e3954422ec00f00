/** Shows how long the last answers were waited for. */

/** @typedef {import("../sdk/duologue.js").DuologueCall} DuologueCall */

/** Height of a full bar; longer waits are cut off at it. */
const FULL_S = 3;

export class LatencyReadout {
  #section;
  #last;
  #median;
  #history;
  #latency;

  /**
   * @param {Document} document
   * @param {DuologueCall} call
   */
  constructor(document, call) {
    this.#section = /** @type {HTMLElement} */ (document.getElementById("latency"));
    this.#last = /** @type {HTMLElement} */ (document.getElementById("latency-last"));
    this.#median = /** @type {HTMLElement} */ (document.getElementById("latency-median"));
    this.#history = /** @type {HTMLElement} */ (document.getElementById("latency-history"));
    this.#latency = call.latency;
    call.on("latency", () => this.#render());
  }

  #render() {
    const { readings } = this.#latency;
    const last = readings.at(-1);
    const median = this.#latency.median();
    if (!last || median === null) return;
    this.#section.hidden = false;
    this.#last.textContent = inSeconds(last.seconds);
    this.#median.textContent = inSeconds(median);
    this.#history.replaceChildren(...readings.map(bar));
  }
}

/** @param {import("../sdk/call/latency.js").Reading} reading */
function bar({ seconds, kind }) {
  const item = document.createElement("li");
  item.dataset.kind = kind;
  item.title = `${inSeconds(seconds)}, ${kind}`;
  item.style.setProperty("--share", String(Math.min(1, Math.max(0.06, seconds / FULL_S))));
  const text = document.createElement("span");
  text.className = "visually-hidden";
  text.textContent = item.title;
  item.append(text);
  return item;
}

/** @param {number} seconds */
function inSeconds(seconds) {
  return `${seconds.toFixed(2)} s`;
}
