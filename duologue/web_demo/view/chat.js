/**
 * Shows the transcript: heard words black, words on their way grey, cut words struck through.
 * Also tells screen readers what was said, once it is final.
 */

/** @typedef {import("../sdk/call/transcript.js").Entry} Entry */
/** @typedef {import("../sdk/duologue.js").DuologueCall} DuologueCall */

/** Nearer to the end than this, the list follows the conversation. */
const FOLLOW_PX = 80;
const NAMES = { you: "You", duologue: "Duologue" };

export class Chat {
  #list;
  #announcer;
  #transcript;
  /** @type {Map<string, HTMLElement>} */
  #rows = new Map();
  /** @type {Set<string>} ids of entries that changed since the last frame */
  #stale = new Set();
  /** @type {Set<string>} */
  #announced = new Set();
  #isScheduled = false;
  #isFollowing = true;

  /**
   * @param {HTMLElement} list
   * @param {HTMLElement} announcer
   * @param {DuologueCall} call
   */
  constructor(list, announcer, call) {
    this.#list = list;
    this.#announcer = announcer;
    this.#transcript = call.transcript;
    list.addEventListener("scroll", () => {
      this.#isFollowing = list.scrollHeight - list.scrollTop - list.clientHeight < FOLLOW_PX;
    });
    new ResizeObserver(() => this.#follow()).observe(list);
    call.on("transcript", ({ id }) => this.#mark(id));
    call.on("transcript-removed", (id) => {
      this.#rows.get(id)?.remove();
      this.#rows.delete(id);
      this.#announced.delete(id);
    });
  }

  /** @param {string} id */
  #mark(id) {
    this.#stale.add(id);
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    requestAnimationFrame(() => this.#render());
  }

  #render() {
    this.#isScheduled = false;
    /** @type {Element | null} */
    let place = this.#list.firstElementChild;
    for (const entry of this.#transcript.entries) {
      const row = this.#row(entry);
      if (row === place) place = place.nextElementSibling;
      else this.#list.insertBefore(row, place);
      if (this.#stale.has(entry.id)) this.#fill(row, entry);
    }
    this.#stale.clear();
    this.#follow();
  }

  #follow() {
    if (this.#isFollowing) this.#list.scrollTop = this.#list.scrollHeight;
  }

  /** @param {Entry} entry */
  #row(entry) {
    const known = this.#rows.get(entry.id);
    if (known) return known;
    const row = document.createElement("li");
    row.dataset.id = entry.id;
    row.dataset.speaker = entry.speaker;
    this.#rows.set(entry.id, row);
    return row;
  }

  /**
   * @param {HTMLElement} row
   * @param {Entry} entry
   */
  #fill(row, entry) {
    row.dataset.state = entry.state;
    const parts = [label(entry), words(entry)];
    row.replaceChildren(...parts.filter((part) => part !== null));
    this.#announce(entry);
  }

  /** @param {Entry} entry */
  #announce(entry) {
    const isFinal = ["final", "heard", "cut"].includes(entry.state);
    if (!isFinal || this.#announced.has(entry.id)) return;
    this.#announced.add(entry.id);
    const line = document.createElement("p");
    const heard = entry.text.slice(0, entry.heardCharacters);
    if (entry.speaker === "note") line.textContent = entry.text;
    else if (entry.state === "cut") line.textContent = `Duologue, interrupted: ${heard}`;
    else line.textContent = `${NAMES[entry.speaker]}: ${entry.text}`;
    this.#announcer.append(line);
    if (this.#announcer.childElementCount > 5) this.#announcer.firstElementChild?.remove();
  }
}

/** @param {Entry} entry */
function label(entry) {
  if (entry.speaker === "note") return null;
  const line = element("p", "who", NAMES[entry.speaker]);
  if (entry.latency_s !== null) {
    line.append(element("span", "after", `after ${entry.latency_s.toFixed(2)} s`));
  }
  if (entry.state === "cut") line.append(element("span", "cut-mark", "interrupted"));
  return line;
}

/** @param {Entry} entry */
function words(entry) {
  const line = element("p", "words");
  if (entry.text === "") {
    line.append(placeholder(entry));
    return line;
  }
  if (entry.speaker !== "duologue") {
    line.append(entry.text);
    return line;
  }
  const rest = entry.text.slice(entry.heardCharacters).trim();
  const heard = entry.text.slice(0, entry.heardCharacters).trimEnd();
  line.append(element("span", "heard", heard));
  if (!rest) return line;
  if (heard) line.append(" ");
  line.append(element(entry.state === "cut" ? "s" : "span", "unheard", rest));
  return line;
}

/** @param {Entry} entry */
function placeholder({ state }) {
  if (state === "failed" || state === "heard") return element("em", "", "without a transcript");
  const dots = element("span", "dots");
  dots.append(element("i", ""), element("i", ""), element("i", ""));
  dots.append(element("span", "visually-hidden", state === "listening" ? "speaking" : "…"));
  return dots;
}

/**
 * @param {string} name
 * @param {string} className
 * @param {string} [text]
 */
function element(name, className, text) {
  const node = document.createElement(name);
  if (className) node.className = className;
  if (text) node.textContent = text;
  return node;
}
