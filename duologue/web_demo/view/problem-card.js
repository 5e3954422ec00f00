/** Shows what went wrong and what to do, with a button for each remedy. */

/** @typedef {import("../sdk/wire/problems.js").Problem} Problem */
/** @typedef {import("../sdk/wire/problems.js").Remedy} Remedy */

/** @type {Record<Remedy, string>} */
const LABELS = {
  call: "Connect again",
  type: "Type instead",
  settings: "Open settings",
  resume: "Resume sound",
};

export class ProblemCard {
  #card;
  #title;
  #text;
  #steps;
  #remedies;

  /** @type {(remedy: Remedy) => void} */
  onRemedy = () => {};

  /** @param {Document} document */
  constructor(document) {
    this.#card = /** @type {HTMLElement} */ (document.getElementById("problem"));
    this.#title = /** @type {HTMLElement} */ (document.getElementById("problem-title"));
    this.#text = /** @type {HTMLElement} */ (document.getElementById("problem-text"));
    this.#steps = /** @type {HTMLElement} */ (document.getElementById("problem-steps"));
    this.#remedies = /** @type {HTMLElement} */ (document.getElementById("problem-remedies"));
  }

  /** @param {Problem | null} problem */
  show(problem) {
    this.#card.hidden = problem === null;
    this.#card.dataset.kind = problem?.kind ?? "";
    if (!problem) return;
    this.#title.textContent = problem.title;
    this.#text.textContent = problem.text;
    this.#steps.replaceChildren(
      ...problem.steps.map((step) => {
        const item = document.createElement("li");
        item.textContent = step;
        return item;
      }),
    );
    const buttons = problem.remedies.map((remedy, index) => this.#button(remedy, index === 0));
    this.#remedies.replaceChildren(...buttons);
    // The call is over, and the control that had the focus with it: the keyboard goes on from here.
    if (problem.remedies[0] === "call") buttons[0].focus({ preventScroll: true });
  }

  /**
   * @param {Remedy} remedy
   * @param {boolean} isFirst
   */
  #button(remedy, isFirst) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = isFirst ? "primary" : "secondary";
    button.dataset.remedy = remedy;
    button.textContent = LABELS[remedy];
    button.onclick = () => this.onRemedy(remedy);
    return button;
  }
}
