/**
 * The duplex dialect on top of other lines: numbered events, each acknowledged and none taken twice;
 * and where a line is lost, another one that goes on with the session. Knows no event but those
 * that say where a session stands.
 */

import { Backoff } from "./backoff.js";
import { LOOK_EVERY_MS, LineWatch } from "./line-watch.js";
import { sessionGone, unreachable } from "./problems.js";
import { SentLog } from "./sent-log.js";

/** @typedef {import("./line.js").Line} Line */
/** @typedef {import("./line.js").RealtimeEvent} RealtimeEvent */
/** @typedef {import("./line.js").Closing} Closing */

/**
 * @typedef {object} Outage
 * @property {Backoff} backoff
 * @property {Closing} closing what ended the line
 */

/** After these the session may be there still: the server or something in between went away. */
const MAY_GO_ON = new Set([1001, 1005, 1006, 1011, 1012, 1013, 1014]);
const TRY_LATER = new Set(["server_full", "server_shutting_down"]);

/** @implements {Line} */
export class DuplexLine {
  #makeLine;
  #now;
  #random;
  /** @type {Line | null} */
  #line = null;
  #url = new URL("http://localhost");
  #key = "";
  #log = new SentLog();
  #lastSeq = 0;
  /** @type {{ id: string, token: string } | null} */
  #session = null;
  /** The session has ended in good order. */
  #isOver = false;
  #rollsOver = false;
  #isUp = false;
  #watch = new LineWatch(0);
  /** @type {Outage | null} */
  #outage = null;
  #watchTimer = 0;
  #dialTimer = 0;

  onOpen = () => {};
  /** @type {(event: RealtimeEvent) => void} */
  onEvent = () => {};
  /** @type {(closing: Closing) => void} */
  onClosed = () => {};
  /** @type {(attempt: { attempt: number, wait_s: number }) => void} */
  onReconnecting = () => {};
  /** @type {(back: { gap_s: number, attempts: number, dropped_ms: number }) => void} */
  onReconnected = () => {};
  /** Another key for another line: client secrets expire. @type {(() => Promise<string>) | null} */
  nextKey = null;

  /**
   * @param {() => Line} makeLine
   * @param {{ now?: () => number, random?: () => number }} [options]
   */
  constructor(makeLine, { now = () => performance.now(), random = Math.random } = {}) {
    this.#makeLine = makeLine;
    this.#now = now;
    this.#random = random;
  }

  /**
   * @param {URL} url
   * @param {string} key
   */
  connect(url, key) {
    this.#url = url;
    this.#key = key;
    const line = this.#dial(url, key);
    line.onOpen = () => {
      this.#isUp = true;
      this.onOpen();
    };
    line.onEvent = (event) => this.#receive(event);
  }

  /** @param {RealtimeEvent} event */
  send(event) {
    const noted = this.#log.note(event);
    if (this.#isUp) this.#line?.send(this.#log.shifted(noted));
  }

  close() {
    if (this.#isUp) this.send({ type: "session.close", reason: "hung up" });
    this.#isOver = true;
    this.#release();
    this.#line?.close();
    this.#line = null;
  }

  /** Dials at once where that is waited for: the network is back. */
  hurry() {
    if (!this.#dialTimer) return;
    clearTimeout(this.#dialTimer);
    this.#dialTimer = 0;
    void this.#tryAgain();
  }

  // While there is a line

  /** @param {RealtimeEvent} event */
  #receive(event) {
    this.#watch.heard(this.#now());
    const seq = event.server_event_seq;
    if (Number.isInteger(seq)) {
      if (seq <= this.#lastSeq) return;
      this.#lastSeq = seq;
      this.send({ type: "session.event_ack", server_event_seq: seq });
    }
    this.#follow(event);
    this.onEvent(event);
  }

  /** @param {RealtimeEvent} event */
  #follow(event) {
    switch (event.type) {
      case "session.created":
        if (!event.resume_token) break;
        if (!this.#session) this.#log.confirmFirst(); // what opened the session
        this.#session = { id: event.session.id, token: event.resume_token };
        this.#startWatching();
        break;
      case "session.resumed":
        this.#session = { id: event.session_id, token: event.resume_token };
        break;
      case "input_audio_buffer.accepted":
      case "session.heartbeat_ack":
        this.#log.confirmAudio(event.next_sample);
        break;
      case "session.closed":
        this.#isOver = true;
        break;
      case "session.expired":
        this.#rollsOver = Boolean(event.rollover);
        this.#isOver = !this.#rollsOver;
        break;
    }
  }

  #startWatching() {
    this.#watch = new LineWatch(this.#now());
    clearInterval(this.#watchTimer);
    this.#watchTimer = setInterval(() => this.#look(), LOOK_EVERY_MS);
  }

  #look() {
    if (!this.#isUp) return;
    const verdict = this.#watch.look(this.#now());
    if (verdict === "ask") this.send({ type: "session.heartbeat" });
    if (verdict === "dead") {
      this.#line?.close();
      this.#lost({ code: 1006, reason: "", wasOpen: true, wasStalled: false });
    }
  }

  // While there is none

  /** @param {Closing} closing */
  #lost(closing) {
    this.#isUp = false;
    this.#line = null;
    const mayGoOn = this.#rollsOver || closing.wasStalled || MAY_GO_ON.has(closing.code);
    if (!this.#session || this.#isOver || !mayGoOn) {
      this.#release();
      this.onClosed(closing);
      return;
    }
    this.#outage ??= { backoff: new Backoff(this.#now(), this.#random), closing };
    this.#planNext(this.#outage);
  }

  /** @param {Outage} outage */
  #planNext({ backoff, closing }) {
    const wait_ms = backoff.next(this.#now());
    if (wait_ms === null) {
      this.#giveUp({ ...closing, problem: unreachable() });
      return;
    }
    this.#dialTimer = setTimeout(() => {
      this.#dialTimer = 0;
      void this.#tryAgain();
    }, wait_ms);
    this.onReconnecting({ attempt: backoff.attempts, wait_s: wait_ms / 1000 });
  }

  async #tryAgain() {
    const outage = this.#outage;
    if (!outage) return;
    if (this.nextKey) {
      try {
        this.#key = await this.nextKey();
      } catch {
        if (this.#outage === outage) this.#planNext(outage);
        return;
      }
      if (this.#outage !== outage) return; // hung up meanwhile
    }
    const url = new URL(this.#url);
    url.searchParams.set("resume", "1"); // lets in where the server is full
    const line = this.#dial(url, this.#key);
    const timer = setTimeout(() => {
      line.close();
      if (this.#line === line) this.#lost(outage.closing);
    }, ATTEMPT_MS);
    line.onOpen = () => {
      const { id, token } = /** @type {{ id: string, token: string }} */ (this.#session);
      line.send({
        type: "session.resume",
        session_id: id,
        resume_token: token,
        last_received_server_event_seq: this.#lastSeq,
      });
    };
    line.onEvent = (event) => {
      clearTimeout(timer);
      this.#enter(line, outage, event);
    };
  }

  /**
   * @param {Line} line
   * @param {Outage} outage
   * @param {RealtimeEvent} event the first one
   */
  #enter(line, outage, event) {
    if (event.type === "error") {
      line.close();
      if (TRY_LATER.has(event.error.code)) this.#lost(outage.closing);
      else this.#refused(outage, event.error.code);
      return;
    }
    if (event.last_event_id) this.#log.confirmEvent(event.last_event_id);
    const next = event.next_sample ?? 0;
    this.#log.confirmAudio(next);
    if (event.type === "session.created") this.#lastSeq = 0; // another session has the conversation
    this.#rollsOver = false;
    line.onEvent = (later) => this.#receive(later);
    for (const said of this.#log.rest(next)) line.send(said);
    this.#isUp = true;
    this.#outage = null;
    this.#receive(event);
    this.#startWatching();
    const gap_s = (this.#now() - outage.backoff.lostAt_ms) / 1000;
    const { attempts } = outage.backoff;
    this.onReconnected({ gap_s, attempts, dropped_ms: this.#log.takeDropped_ms() });
  }

  /**
   * @param {Outage} outage
   * @param {string} code
   */
  #refused({ closing }, code) {
    // A session that was too old has said so; where nothing follows it, that is what there is to say.
    this.#giveUp(this.#rollsOver ? closing : { ...closing, problem: sessionGone(code) });
  }

  /** @param {Closing} closing */
  #giveUp(closing) {
    this.#isOver = true;
    this.#release();
    this.#line = null;
    this.onClosed(closing);
  }

  /**
   * @param {URL} url
   * @param {string} key
   */
  #dial(url, key) {
    const line = this.#makeLine();
    this.#line = line;
    line.onClosed = (closing) => {
      if (this.#line === line) this.#lost(this.#outage ? this.#outage.closing : closing);
    };
    line.connect(url, key);
    return line;
  }

  #release() {
    clearInterval(this.#watchTimer);
    clearTimeout(this.#dialTimer);
    this.#dialTimer = 0;
    this.#outage = null;
    this.#isUp = false;
  }
}

/** How long one attempt may take. */
const ATTEMPT_MS = 5000;
