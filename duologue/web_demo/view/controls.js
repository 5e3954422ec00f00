/**
 * Buttons and keys: connect, mute, talk, volume, hang up, type. Turns them into calls of the call,
 * and the call's state into their look.
 */

/** @typedef {import("../sdk/duologue.js").DuologueCall} Call */

const STATUS = {
  connecting: "Connecting",
  ended: "Call ended",
  reconnecting: "Reconnecting…",
  muted: "Muted",
  deaf: "No microphone",
  both: "Both speaking",
  you: "Hearing you",
  duologue: "Speaking",
  thinking: "Thinking",
  ready: "Ready",
  listening: "Listening",
};

export class Controls {
  #call;
  #document;
  #status;
  #mute;
  #talk;
  #message;

  /** @type {(volume: number) => void} */
  onVolume = () => {};
  /** The person wants to talk. */
  onConnect = () => {};

  /**
   * @param {Document} document
   * @param {Call} call
   * @param {number} volume
   */
  constructor(document, call, volume) {
    this.#call = call;
    this.#document = document;
    this.#status = byId(document, "status");
    this.#mute = byId(document, "mute");
    this.#talk = byId(document, "talk");
    this.#message = /** @type {HTMLInputElement} */ (byId(document, "message"));
    const slider = /** @type {HTMLInputElement} */ (byId(document, "volume"));
    slider.value = String(volume);
    slider.oninput = () => this.onVolume(Number(slider.value));
    byId(document, "connect").onclick = () => this.onConnect();
    byId(document, "again").onclick = () => this.onConnect();
    byId(document, "hang-up").onclick = () => call.hangUp();
    this.#mute.onclick = () => call.setMuted(!call.isMuted);
    byId(document, "composer").onsubmit = (event) => {
      event.preventDefault();
      this.#send();
    };
    this.#bindTalk();
    document.addEventListener("keydown", (event) => this.#keyDown(event));
    document.addEventListener("keyup", (event) => {
      if (event.code !== "Space") return;
      call.release();
      if (event.target === this.#talk) event.preventDefault(); // else the button is clicked as well
    });
    // A release outside the window never arrives; nobody may be left talking unawares.
    window.addEventListener("blur", () => call.release());
  }

  render() {
    const { phase, floor, isMuted, hasMicrophone } = this.#call;
    const { body } = this.#document;
    body.dataset.phase = phase;
    body.dataset.status = this.#state();
    body.dataset.floor = [
      ...(floor.you ? ["you"] : []),
      ...(floor.duologue ? ["duologue"] : []),
    ].join(" ");
    const text = phase === "idle" ? "" : STATUS[this.#state()];
    if (this.#status.textContent !== text) this.#status.textContent = text;
    this.#mute.setAttribute("aria-pressed", String(isMuted));
    this.#mute.toggleAttribute("disabled", !hasMicrophone);
    this.#talk.hidden = !this.#isManual || !hasMicrophone;
    this.#talk.setAttribute("aria-pressed", String(floor.you));
    const isLive = phase === "live";
    this.#message.disabled = !isLive;
    byId(this.#document, "send").toggleAttribute("disabled", !isLive);
    const connect = byId(this.#document, "connect");
    connect.toggleAttribute("disabled", phase === "connecting");
    byId(this.#document, "connect-label").textContent =
      phase === "connecting" ? "Connecting…" : "Connect";
  }

  get #isManual() {
    return this.#call.options.pushToTalk;
  }

  /** @returns {keyof typeof STATUS} */
  #state() {
    const { phase, floor, isMuted, isReconnecting, hasMicrophone } = this.#call;
    if (phase === "connecting") return "connecting";
    if (phase !== "live") return "ended";
    if (isReconnecting) return "reconnecting";
    if (floor.you && floor.duologue) return "both";
    if (floor.you) return "you";
    if (floor.duologue) return "duologue";
    if (floor.thinking) return "thinking";
    if (!hasMicrophone) return "deaf";
    if (isMuted) return "muted";
    return this.#isManual ? "ready" : "listening";
  }

  #bindTalk() {
    const talk = this.#talk;
    talk.onpointerdown = (event) => {
      talk.setPointerCapture(event.pointerId);
      this.#call.press();
    };
    talk.onpointerup = () => this.#call.release();
    talk.onpointercancel = () => this.#call.release();
    talk.onclick = ({ detail }) => {
      // No pointer: a screen reader, or Enter, which cannot hold. The first one talks, the next ends.
      if (detail > 0) return;
      if (this.#call.floor.you) this.#call.release();
      else this.#call.press();
    };
    talk.oncontextmenu = (event) => event.preventDefault(); // a long press on a phone
  }

  /** @param {KeyboardEvent} event */
  #keyDown(event) {
    const target = /** @type {HTMLElement} */ (event.target);
    const isBusy = target.closest("input, textarea, select, dialog") !== null;
    if (isBusy || event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "m" && this.#call.hasMicrophone) this.#call.setMuted(!this.#call.isMuted);
    const isOtherButton = target.closest("button") !== null && target !== this.#talk;
    if (event.code === "Space" && this.#isManual && !isOtherButton) {
      event.preventDefault();
      this.#call.press();
    }
  }

  #send() {
    const text = this.#message.value.trim();
    if (!text || this.#call.phase !== "live") return;
    this.#message.value = "";
    this.#call.sendText(text);
  }
}

/**
 * @param {Document} document
 * @param {string} id
 */
function byId(document, id) {
  return /** @type {HTMLElement} */ (document.getElementById(id));
}
