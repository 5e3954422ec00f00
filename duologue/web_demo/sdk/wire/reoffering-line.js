/**
 * A line over WebRTC that outlives its connections: where one is lost, another offer goes on with the
 * session. Events and sound that were under way are lost. Knows no event but the one that greets.
 */

import { Backoff } from "./backoff.js";
import { sessionGone, unreachable } from "./problems.js";

/** @typedef {import("./line.js").Line} Line */
/** @typedef {import("./line.js").RealtimeEvent} RealtimeEvent */
/** @typedef {import("./line.js").Closing} Closing */

/**
 * @typedef {Line & {
 *   iceServers: RTCIceServer[],
 *   isOneOfSeveral: boolean,
 *   onStream: (stream: MediaStream) => void,
 *   setTrack: (track: MediaStreamTrack | null) => void,
 *   setOpen: (isOpen: boolean) => void,
 * }} PeerLine
 */

/** There is nothing to go on with. */
const GONE = new Set([
  "session_resume_expired",
  "session_resume_conflict",
  "invalid_resume_token",
  "api_key_not_allowed",
]);

/** @implements {Line} */
export class ReofferingLine {
  #makeLine;
  #now;
  #random;
  /** @type {PeerLine | null} */
  #line = null;
  #url = new URL("http://localhost");
  /** @type {{ id: string, token: string } | null} */
  #session = null;
  /** @type {{ backoff: Backoff, closing: Closing } | null} */
  #outage = null;
  /** @type {MediaStreamTrack | null} */
  #track = null;
  #isOpen = false;
  #timer = 0;

  /** @type {RTCIceServer[]} */
  iceServers = [];
  onOpen = () => {};
  /** @type {(event: RealtimeEvent) => void} */
  onEvent = () => {};
  /** @type {(closing: Closing) => void} */
  onClosed = () => {};
  /** @type {(stream: MediaStream) => void} */
  onStream = () => {};
  /** @type {(attempt: { attempt: number, wait_s: number }) => void} */
  onReconnecting = () => {};
  /** @type {(back: { gap_s: number, attempts: number, dropped_ms: number }) => void} */
  onReconnected = () => {};
  /** @type {(() => Promise<string>) | null} */
  nextKey = null;

  /**
   * @param {() => PeerLine} makeLine
   * @param {{ now?: () => number, random?: () => number }} [options]
   */
  constructor(makeLine, { now = () => performance.now(), random = Math.random } = {}) {
    this.#makeLine = makeLine;
    this.#now = now;
    this.#random = random;
  }

  /**
   * @param {URL} url where offers are posted to
   * @param {string} key empty for none
   */
  connect(url, key) {
    this.#url = url;
    const asking = new URL(url);
    asking.searchParams.set("resumable", "1");
    this.#dial(asking, key);
  }

  /** @param {MediaStreamTrack | null} track */
  setTrack(track) {
    this.#track = track;
    this.#line?.setTrack(track);
  }

  /** @param {boolean} isOpen */
  setOpen(isOpen) {
    this.#isOpen = isOpen;
    this.#line?.setOpen(isOpen);
  }

  /** @param {RealtimeEvent} event */
  send(event) {
    if (!this.#outage) this.#line?.send(event);
  }

  close() {
    clearTimeout(this.#timer);
    this.#outage = null;
    this.#session = null;
    const line = this.#line;
    this.#line = null;
    line?.close();
  }

  /** Dials at once where that is waited for: the network is back. */
  hurry() {
    if (!this.#timer) return;
    clearTimeout(this.#timer);
    void this.#tryAgain();
  }

  /**
   * @param {URL} url
   * @param {string} key
   */
  #dial(url, key) {
    const line = this.#makeLine();
    this.#line = line;
    line.iceServers = this.iceServers;
    line.isOneOfSeveral = this.#session !== null;
    line.setTrack(this.#track);
    line.setOpen(this.#isOpen);
    line.onStream = (stream) => this.onStream(stream);
    line.onOpen = () => (this.#outage ? this.#back(this.#outage) : this.onOpen());
    line.onEvent = (event) => {
      if (event.type === "session.created" && event.resume_token) {
        this.#session = { id: event.session.id, token: event.resume_token };
        line.isOneOfSeveral = true;
      }
      this.onEvent(event);
    };
    line.onClosed = (closing) => {
      if (this.#line === line) this.#lost(closing);
    };
    line.connect(url, key);
  }

  /** @param {Closing} closing */
  #lost(closing) {
    this.#line = null;
    if (!this.#session || closing.wasStalled) {
      this.onClosed(closing);
      return;
    }
    if (closing.refusedWith && GONE.has(closing.refusedWith)) {
      this.#giveUp({ ...closing, wasOpen: true, problem: sessionGone(closing.refusedWith) });
      return;
    }
    this.#outage ??= { backoff: new Backoff(this.#now(), this.#random), closing };
    this.#planNext();
  }

  #planNext() {
    if (!this.#outage) return;
    const { backoff, closing } = this.#outage;
    const wait_ms = backoff.next(this.#now());
    if (wait_ms === null) {
      this.#giveUp({ ...closing, problem: unreachable() });
      return;
    }
    this.#timer = setTimeout(() => void this.#tryAgain(), wait_ms);
    this.onReconnecting({ attempt: backoff.attempts, wait_s: wait_ms / 1000 });
  }

  async #tryAgain() {
    this.#timer = 0;
    const outage = this.#outage;
    let key = "";
    try {
      key = (await this.nextKey?.()) ?? "";
    } catch {
      if (this.#outage === outage) this.#planNext();
      return;
    }
    if (!outage || this.#outage !== outage || !this.#session) return; // hung up meanwhile
    const url = new URL(this.#url);
    url.searchParams.set("session_id", this.#session.id);
    url.searchParams.set("resume_token", this.#session.token);
    this.#dial(url, key);
  }

  /** @param {{ backoff: Backoff }} outage */
  #back({ backoff }) {
    this.#outage = null;
    const gap_s = (this.#now() - backoff.lostAt_ms) / 1000;
    this.onReconnected({ gap_s, attempts: backoff.attempts, dropped_ms: 0 });
  }

  /** @param {Closing} closing */
  #giveUp(closing) {
    this.close();
    this.onClosed(closing);
  }
}
