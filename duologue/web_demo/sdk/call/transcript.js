/**
 * The conversation as text: who said what, in the order of the conversation, and what of it was
 * heard. Pure.
 */

/**
 * @typedef {object} Entry
 * @property {string} id of the conversation item
 * @property {"you" | "duologue" | "note"} speaker
 * @property {string} text
 * @property {number} heardCharacters of Duologue's words
 * @property {EntryState} state
 * @property {number | null} latency_s how long this answer was waited for
 */

/**
 * @typedef {"listening" | "pending" | "partial" | "final" | "failed"
 *   | "speaking" | "heard" | "cut"} EntryState
 * of yours: listening (you speak, no words yet), pending (you have spoken, no words yet), partial,
 * final, failed; of Duologue's: speaking, heard, cut
 */

const MAX_ENTRIES = 400;

export class Transcript {
  /** @type {Entry[]} */
  entries = [];
  #notes = 0;
  /** @type {(entry: Entry) => void} */
  onChange = () => {};
  /** @type {(id: string) => void} */
  onRemove = () => {};

  /**
   * @param {string} id
   * @returns {Entry | undefined}
   */
  find(id) {
    return this.entries.find((entry) => entry.id === id);
  }

  /** @param {string} id of an item that the person has begun to speak */
  userSpeaks(id) {
    this.#dropUnspoken();
    this.#place({ id, speaker: "you", state: "listening" });
  }

  /**
   * The person's turn is over; its text may still be on its way.
   * @param {string} id
   * @param {string | null | undefined} previousId
   */
  userCommitted(id, previousId) {
    const entry = this.#place({ id, speaker: "you", state: "pending" }, previousId);
    if (entry.state === "listening") entry.state = "pending";
    this.onChange(entry);
  }

  /**
   * @param {string} id
   * @param {string} delta
   */
  userText(id, delta) {
    const entry = this.#place({ id, speaker: "you", state: "pending" });
    if (entry.state === "final") return;
    entry.text += delta;
    entry.state = "partial";
    this.onChange(entry);
  }

  /**
   * @param {string} id
   * @param {string} text
   */
  userFinal(id, text) {
    const entry = this.#place({ id, speaker: "you", state: "pending" });
    if (text.trim() === "") {
      this.#remove(entry); // a cough or a click: there is nothing to read
      return;
    }
    entry.text = text.trim();
    entry.state = "final";
    this.onChange(entry);
  }

  /** @param {string} id */
  userFailed(id) {
    const entry = this.#place({ id, speaker: "you", state: "pending" });
    entry.state = "failed";
    this.onChange(entry);
  }

  /**
   * @param {string} id
   * @param {string} delta
   */
  answerText(id, delta) {
    const entry = this.#place({ id, speaker: "duologue", state: "speaking" });
    entry.text += delta;
    if (entry.state === "heard") entry.heardCharacters = entry.text.length;
    this.onChange(entry);
  }

  /**
   * @param {string} id
   * @param {number} heardCharacters
   */
  answerHeard(id, heardCharacters) {
    const entry = this.find(id);
    if (!entry || entry.state !== "speaking" || entry.heardCharacters >= heardCharacters) return;
    entry.heardCharacters = heardCharacters;
    this.onChange(entry);
  }

  /** @param {string} id of an answer that was heard to its end (or was only text) */
  answerFinished(id) {
    const entry = this.find(id);
    if (!entry || entry.state !== "speaking") return;
    entry.heardCharacters = entry.text.length;
    entry.state = "heard";
    this.onChange(entry);
  }

  /**
   * @param {string} id
   * @param {number} heardCharacters
   */
  answerCut(id, heardCharacters) {
    const entry = this.find(id);
    if (!entry || entry.state !== "speaking") return;
    entry.heardCharacters = heardCharacters;
    entry.state = "cut";
    if (entry.text === "") this.#remove(entry);
    else this.onChange(entry);
  }

  /**
   * @param {string} id of an answer that was cut
   * @param {number} heardCharacters as the server has it, which counts
   */
  cutCorrected(id, heardCharacters) {
    const entry = this.find(id);
    if (!entry || entry.state !== "cut" || entry.heardCharacters === heardCharacters) return;
    entry.heardCharacters = heardCharacters;
    this.onChange(entry);
  }

  /**
   * @param {string} id
   * @param {number} latency_s
   */
  answerLatency(id, latency_s) {
    const entry = this.#place({ id, speaker: "duologue", state: "speaking" });
    entry.latency_s = latency_s;
    this.onChange(entry);
  }

  /**
   * What was said while nobody listened: the conversation as the server has it.
   * @param {import("../wire/line.js").RealtimeEvent["item"][]} items in order
   * @param {Set<string>} playing those that are yet to be heard to their end
   */
  takeUp(items, playing) {
    /** @type {string | null} */
    let previousId = null;
    for (const item of items) {
      const text = wordsOf(item);
      if (text === "" || item.role === "system") continue;
      if (item.role === "user") {
        this.userCommitted(item.id, previousId);
        this.userFinal(item.id, text);
      } else {
        this.#place({ id: item.id, speaker: "duologue", state: "speaking" }, previousId);
        this.answerWhole(item.id, text);
        if (!playing.has(item.id)) this.answerFinished(item.id);
      }
      previousId = item.id;
    }
  }

  /**
   * @param {string} id of an answer
   * @param {string} text all of it, or the beginning; some of its pieces may have been missed
   */
  answerWhole(id, text) {
    const entry = this.find(id);
    if (!entry || entry.text.startsWith(text)) return;
    entry.text = text;
    if (entry.state === "heard") entry.heardCharacters = text.length;
    this.onChange(entry);
  }

  /** @param {string} text a remark of the page itself, between the turns */
  note(text) {
    this.#notes += 1;
    const entry = this.#place({ id: `note_${this.#notes}`, speaker: "note", state: "final" });
    entry.text = text;
    this.onChange(entry);
  }

  /** The call is over: nothing that is open will be completed. */
  close() {
    this.#dropUnspoken();
    for (const entry of this.entries) {
      if (entry.state === "partial") entry.state = "final";
      else if (entry.state === "pending") entry.state = "failed";
      else if (entry.state === "speaking") entry.state = "cut";
      else continue;
      this.onChange(entry);
    }
  }

  /** Speech that was a false alarm leaves an entry that nobody will fill. */
  #dropUnspoken() {
    const last = this.entries.at(-1);
    if (last?.state === "listening" && last.speaker === "you") this.#remove(last);
  }

  /**
   * @param {Pick<Entry, "id" | "speaker" | "state">} facts
   * @param {string | null | undefined} [previousId]
   * @returns {Entry} the known entry of this id, or a new one
   */
  #place(facts, previousId) {
    const known = this.find(facts.id);
    const entry = known ?? { ...facts, text: "", heardCharacters: 0, latency_s: null };
    const previous = this.entries.findIndex(({ id }) => id === previousId);
    const isInPlace = known && (previous === -1 || this.entries[previous + 1] === known);
    if (isInPlace) return entry;
    if (known) this.entries.splice(this.entries.indexOf(known), 1);
    const at = previous === -1 ? this.entries.length : this.#indexAfter(previousId);
    this.entries.splice(at, 0, entry);
    if (this.entries.length > MAX_ENTRIES) this.#remove(this.entries[0]);
    this.onChange(entry);
    return entry;
  }

  /** @param {string | null | undefined} id */
  #indexAfter(id) {
    return this.entries.findIndex((entry) => entry.id === id) + 1;
  }

  /** @param {Entry} entry */
  #remove(entry) {
    this.entries.splice(this.entries.indexOf(entry), 1);
    this.onRemove(entry.id);
  }
}

/**
 * @param {import("../wire/line.js").RealtimeEvent["item"]} item
 * @returns {string} what was said or written in it
 */
function wordsOf({ content }) {
  const parts = /** @type {{ text?: string, transcript?: string }[]} */ (content ?? []);
  return parts.map(({ text, transcript }) => text ?? transcript ?? "").join("").trim();
}
