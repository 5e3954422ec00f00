/** Keeps a phone's screen on during a call: a page whose screen goes dark is soon silenced. */

export class WakeLock {
  #isWanted = false;
  /** @type {WakeLockSentinel | null} */
  #lock = null;

  /** @param {Document} document */
  constructor(document) {
    // The system takes the lock back whenever the page is hidden.
    document.addEventListener("visibilitychange", () => {
      if (document.visibilityState === "visible" && this.#isWanted) void this.#take();
    });
  }

  /** @param {boolean} isWanted */
  want(isWanted) {
    if (isWanted === this.#isWanted) return;
    this.#isWanted = isWanted;
    if (isWanted) void this.#take();
    else void this.#lock?.release();
  }

  async #take() {
    try {
      this.#lock = await navigator.wakeLock?.request("screen");
    } catch {
      this.#lock = null; // refused, on a low battery for one; the call does not need it
    }
  }
}
