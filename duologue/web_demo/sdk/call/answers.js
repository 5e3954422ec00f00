/** The latest answers of a call, by item. Pure. */

import { Answer } from "./answer.js";

const MAX_ANSWERS = 32;

export class Answers {
  /** @type {Map<string, Answer>} oldest first */
  #answers = new Map();
  /** Where the first audio begins of those that nothing has come of yet. @type {Map<string, number>} */
  #ahead = new Map();

  /**
   * @param {string} id of an item
   * @returns {Answer | undefined}
   */
  find(id) {
    return this.#answers.get(id);
  }

  /**
   * @param {import("../wire/line.js").RealtimeEvent} event of an answer, known or new
   * @returns {Answer}
   */
  of({ item_id, response_id, content_index }) {
    const known = this.#answers.get(item_id);
    if (known) return known;
    const answer = new Answer(item_id, response_id, content_index ?? 0);
    this.#answers.set(item_id, answer);
    answer.resumeAt(this.#ahead.get(item_id) ?? 0);
    this.#ahead.delete(item_id);
    const [oldest] = this.#answers.keys();
    if (this.#answers.size > MAX_ANSWERS) this.#answers.delete(oldest);
    return answer;
  }

  /**
   * Audio got lost: the next one of each begins elsewhere than where the last one ended.
   * @param {Map<string, number>} positions samples, by item
   */
  resumeAt(positions) {
    this.#ahead = new Map(positions);
    for (const answer of this.#answers.values()) {
      answer.resumeAt(positions.get(answer.id) ?? 0);
      this.#ahead.delete(answer.id);
    }
  }

  /** @param {string} responseId */
  ofResponse(responseId) {
    return [...this.#answers.values()].filter((answer) => answer.responseId === responseId);
  }

  /** @returns {Answer[]} those of which something may still be played */
  open() {
    return [...this.#answers.values()].filter(({ isOver }) => !isOver);
  }

  /** @returns {Answer | undefined} the one that can be heard now */
  playing() {
    return this.open().find(({ playedSamples }) => playedSamples > 0);
  }

  clear() {
    this.#answers.clear();
  }
}
