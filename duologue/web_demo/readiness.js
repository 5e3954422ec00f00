/** Asks a server that is still starting until it is ready. Knows neither calls nor the page. */

const ASK_EVERY_MS = 2000;
const ANSWER_TIMEOUT_MS = 5000;

export class Readiness {
  #url;
  #ask;
  #askEveryMs;
  #timeoutMs;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;

  /** Called once for each time that it was waited for. */
  onReady = () => {};

  /**
   * @param {URL} url answers with success once calls are taken
   * @param {typeof fetch} ask
   * @param {number} askEveryMs
   * @param {number} timeoutMs of one answer: a server that hangs is asked again
   */
  constructor(url, ask, askEveryMs = ASK_EVERY_MS, timeoutMs = ANSWER_TIMEOUT_MS) {
    this.#url = url;
    this.#ask = ask;
    this.#askEveryMs = askEveryMs;
    this.#timeoutMs = timeoutMs;
  }

  /** @param {boolean} isWanted */
  want(isWanted) {
    clearTimeout(this.#timer);
    this.#timer = isWanted ? setTimeout(() => void this.#look(), this.#askEveryMs) : undefined;
  }

  async #look() {
    const timer = this.#timer;
    const signal = AbortSignal.timeout(this.#timeoutMs);
    const isReady = await this.#ask(this.#url, { cache: "no-store", signal }).then(
      (answer) => answer.ok,
      () => false,
    );
    if (timer !== this.#timer) return; // nobody waits for this any more
    this.want(!isReady);
    if (isReady) this.onReady();
  }
}
