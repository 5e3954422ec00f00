/**
 * A spoken call with a Duologue gateway from any page, which imports this module from the gateway.
 *
 * `DuologueCall` dials, joins microphone, line and loudspeaker, hangs up, and says what went wrong.
 * It knows no DOM. Types are in duologue.d.ts, the rest in docs/browser.md.
 */

import { Microphone } from "./audio/microphone.js";
import { Conversation } from "./call/conversation.js";
import { Latency } from "./call/latency.js";
import { Timeline } from "./call/timeline.js";
import { Tools } from "./call/tools.js";
import { Transcript } from "./call/transcript.js";
import { CallError, problemOfKey } from "./call-error.js";
import { Emitter } from "./emitter.js";
import { DEFAULT_OPTIONS, changed, secretOf, sessionOf } from "./options.js";
import { transportOf } from "./transport/transport.js";
import { diagnose } from "./wire/diagnosis.js";
import { realtimeUrl } from "./wire/line.js";
import * as problems from "./wire/problems.js";

/** @typedef {import("./options.js").CallOptions} CallOptions */
/** @typedef {import("./transport/transport.js").Transport} Transport */
/** @typedef {import("./wire/line.js").RealtimeEvent} RealtimeEvent */
/** @typedef {import("./wire/line.js").Closing} Closing */
/** @typedef {import("./wire/problems.js").Problem} Problem */
/** @typedef {"idle" | "connecting" | "live" | "ended"} Phase */

const TURN_DETECTION = "session.audio.input.turn_detection";

export { videoFrame } from "./call/camera.js";
export { CallError } from "./call-error.js";
export { environmentProblem } from "./wire/problems.js";

export class DuologueCall {
  /** @type {CallOptions} */
  #options;
  #events = new Emitter();
  #microphone = new Microphone();
  /** @type {Transport | null} */
  #transport = null;
  /** @type {Conversation | null} */
  #conversation = null;
  /** @type {Tools | null} */
  #tools = null;
  /** Grows with each dialling and hanging up, so that what an older one awaited is dropped. */
  #attempt = 0;
  #secret = "";
  #isVoiceOpen = false;
  #hadInstructions = false;
  #hadCall = false;
  #problemKind = "";
  /** @type {{ resolve: () => void, reject: (error: CallError) => void } | null} */
  #starting = null;

  transcript = new Transcript();
  timeline = new Timeline();
  latency = new Latency();
  /** @type {Phase} */
  phase = "idle";
  hasMicrophone = false;
  isMuted = false;
  /** The line is lost, and is dialled again; the call goes on. */
  isReconnecting = false;
  startedAt_ms = 0;

  /** @param {Partial<CallOptions>} [options] */
  constructor(options = {}) {
    this.#options = changed(DEFAULT_OPTIONS, options);
    this.#microphone.onChunk = (pcm, at_ms) => this.#conversation?.hear(pcm, at_ms);
    this.#microphone.onTrack = (track) => this.#transport?.setTrack(track);
    this.#microphone.onLost = () => this.#microphoneLost();
    this.transcript.onChange = (entry) => this.#events.emit("transcript", entry);
    this.transcript.onRemove = (id) => this.#events.emit("transcript-removed", id);
    this.timeline.onLevel = (side, at_ms, level) => this.#events.emit("level", { side, at_ms, level });
    this.timeline.onCut = (cut) => this.#events.emit("cut", cut);
    this.latency.onChange = () => this.#events.emit("latency", this.latency.readings.at(-1));
  }

  /**
   * @param {string} type
   * @param {(detail: any) => void} listener
   * @returns {() => void} takes the listener away again
   */
  on(type, listener) {
    return this.#events.on(type, listener);
  }

  /** Who speaks, and whether an answer is on its way. */
  get floor() {
    return this.#conversation?.floor ?? { you: false, duologue: false, thinking: false };
  }

  get options() {
    return this.#options;
  }

  /** How the call goes: it differs from the options after a fallback. */
  get transport() {
    return this.#transport?.name ?? this.#options.transport;
  }

  /** @returns {number[]} levels of audio that has arrived and is still to be played, 20 ms each */
  upcoming() {
    return this.#conversation?.upcoming() ?? [];
  }

  /**
   * Call it in the handler of a click, because sound and microphone start in no other place.
   * @param {{ withMicrophone?: boolean }} [options]
   * @returns {Promise<void>} once the call is on
   * @throws {CallError}
   */
  start({ withMicrophone = true } = {}) {
    this.#stop();
    this.#tell(null);
    this.#setPhase("connecting");
    const started = new Promise((resolve, reject) => {
      this.#starting = { resolve: () => resolve(undefined), reject };
    });
    const hindrance = problems.environmentProblem(globalThis);
    if (hindrance) this.#fail(hindrance);
    else void this.#dial(this.#options.transport, withMicrophone);
    return started;
  }

  hangUp() {
    this.#stop();
    this.#tell(null);
  }

  /**
   * Changes options, of a call that is on, too: session, turns, microphone, loudspeaker and volume
   * at once, the rest with the next call.
   * @param {Partial<CallOptions>} changes
   * @throws {TypeError} where they name what does not exist
   */
  configure(changes) {
    this.#options = changed(this.#options, changes);
    const has = (/** @type {(keyof CallOptions)[]} */ ...names) => names.some((name) => name in changes);
    if (has("volume")) this.#transport?.sound.setVolume(this.#options.volume);
    if (has("speakerId")) void this.#chooseSpeaker();
    if (has("microphone")) void this.#reopenMicrophone();
    if (has("session", "pushToTalk")) this.#applySession();
  }

  /** @param {boolean} isMuted */
  setMuted(isMuted) {
    this.isMuted = isMuted;
    this.#microphone.setMuted(isMuted);
    this.#directVoice();
    this.#changed();
  }

  /** @param {string} text asked like speech: it interrupts */
  sendText(text) {
    if (this.phase === "live") void this.#conversation?.type(text);
  }

  /** Ends the answer that is being given. */
  interrupt() {
    if (this.phase === "live") void this.#conversation?.interrupt();
  }

  /** @param {RealtimeEvent} event any other of the Realtime API */
  send(event) {
    this.#transport?.line.send(event);
  }

  press() {
    if (this.phase === "live") this.#conversation?.press();
  }

  release() {
    this.#conversation?.release();
  }

  /** Call it in the handler of a click, where the system had paused the sound. */
  resumeSound() {
    this.#transport?.sound.resume();
    this.#microphone.resume();
  }

  /**
   * @param {Transport["name"]} name
   * @param {boolean} withMicrophone
   */
  async #dial(name, withMicrophone) {
    this.#attempt += 1;
    const attempt = this.#attempt;
    const isStale = () => attempt !== this.#attempt;
    const { dialect, iceServers, key, microphone, volume } = this.#options;
    const transport = transportOf(name, { isDuplex: dialect === "duplex", iceServers });
    this.#adopt(transport);
    const [sound, hearing, secret] = await Promise.allSettled([
      transport.sound.open(),
      withMicrophone && !this.#microphone.track ? this.#microphone.open(microphone) : null,
      secretOf(key),
    ]);
    if (isStale()) return;
    if (secret.status === "rejected") return this.#fail(problemOfKey(secret.reason));
    this.#secret = secret.value;
    if (hearing.status === "rejected" || sound.status === "rejected") {
      // Worklets are fetched now, so a server that has gone meanwhile first shows here.
      const refusal = await this.#askWhy();
      if (isStale()) return;
      if (refusal.status === 0) return this.#fail(problems.refusalProblem(refusal));
      if (hearing.status === "rejected") return this.#fail(problems.microphoneProblem(hearing.reason));
      if (sound.status === "rejected") return this.#fail(problems.soundProblem(sound.reason));
    }
    this.hasMicrophone = withMicrophone;
    transport.sound.setVolume(volume);
    void this.#chooseSpeaker();
    transport.setTrack(this.#microphone.track);
    transport.connect(this.#baseUrl(), this.#options.model, this.#secret);
  }

  /** @param {Transport} transport */
  #adopt(transport) {
    this.#transport = transport;
    const { line, sound, speaker, heard } = transport;
    const tools = new Tools(this.#options.tools, (event) => line.send(event));
    tools.onResult = (result) => this.#events.emit("tool", result);
    this.#tools = tools;
    const { transcript, timeline, latency } = this;
    const conversation = new Conversation({
      send: (event) => line.send(event),
      speaker,
      heard,
      transcript,
      timeline,
      latency,
      now: () => performance.now(),
    });
    conversation.onVoice = (isOpen) => {
      this.#isVoiceOpen = isOpen;
      this.#directVoice();
    };
    conversation.setManual(this.#options.pushToTalk);
    conversation.onFloor = () => this.#changed();
    conversation.onNotice = (text) => this.#events.emit("notice", text);
    this.#conversation = conversation;
    transport.listen({
      receive: (event) => this.#receive(event),
      played: (report) => conversation.played(report),
      hearAnswer: (pcm, at_ms) => conversation.hearAnswer(pcm, at_ms),
    });
    transport.follow({
      nextKey: () => secretOf(this.#options.key),
      reconnecting: (attempt) => this.#reconnecting(attempt),
      reconnected: (back) => this.#reconnected(back),
    });
    transport.onFull = () =>
      this.#events.emit("notice", "More than two minutes of audio waited; some was dropped.");
    line.onOpen = () => {
      if (transport.isDuplex) this.#sendSession();
    };
    line.onClosed = (closing) => void this.#closed(closing);
    sound.onSuspended = (isSuspended) => {
      if (isSuspended && this.phase === "live") this.#tell(problems.soundSuspended());
      else if (!isSuspended) this.#settle("sound-suspended");
    };
  }

  /** @param {RealtimeEvent} event */
  #receive(event) {
    if (event.type === "session.created" && this.phase === "connecting") this.#begin();
    const isRefusal = event.type === "error" && event.error.param?.startsWith(TURN_DETECTION);
    if (isRefusal) this.#leaveTurnTakingToServer();
    else this.#conversation?.receive(event);
    this.#tools?.receive(event);
    this.#events.emit("event", event);
  }

  #begin() {
    if (this.#hadCall) {
      this.transcript.note("A new call: Duologue remembers nothing of the one before.");
    }
    this.#hadCall = true;
    this.startedAt_ms = performance.now();
    this.#setPhase("live");
    if (!this.#transport?.isDuplex) this.#sendSession();
    this.#starting?.resolve();
    this.#starting = null;
  }

  #directVoice() {
    this.#transport?.setOpen(this.#isVoiceOpen && !this.isMuted);
  }

  #applySession() {
    this.#conversation?.setManual(this.#options.pushToTalk);
    if (this.phase === "live") this.#sendSession();
    this.#changed();
  }

  #sendSession() {
    const session = this.#session();
    this.send({ type: "session.update", session });
    if (session.instructions) this.#hadInstructions = true;
  }

  /** @returns {{ [field: string]: any }} */
  #session() {
    const session = sessionOf(this.#options, this.#tools?.describe() ?? []);
    // Absent means "as it is": instructions that were taken back must be cleared by name.
    return this.#hadInstructions ? { instructions: null, ...session } : session;
  }

  /**
   * An update is refused whole. Where the server cannot take turns as was asked, the rest is sent
   * again, and its own way of taking turns stays in force.
   */
  #leaveTurnTakingToServer() {
    const notice = "This server takes turns in its own way: it cannot do what the settings ask for.";
    this.#events.emit("notice", notice);
    const { audio, ...session } = this.#session();
    const { turn_detection: _, ...input } = audio.input;
    this.send({ type: "session.update", session: { ...session, audio: { ...audio, input } } });
  }

  async #reopenMicrophone() {
    if (this.phase !== "live") return;
    const attempt = this.#attempt;
    try {
      await this.#microphone.open(this.#options.microphone);
      if (attempt !== this.#attempt) return;
      this.hasMicrophone = true;
      this.#tell(null);
      this.#changed();
    } catch (error) {
      if (attempt === this.#attempt) this.#tell(problems.microphoneProblem(error));
    }
  }

  async #chooseSpeaker() {
    try {
      await this.#transport?.sound.chooseSpeaker(this.#options.speakerId);
    } catch {
      this.#events.emit("notice", "The chosen speaker is not there; the system's own plays instead.");
    }
  }

  #baseUrl() {
    return new URL(this.#options.url, globalThis.document?.baseURI);
  }

  #askWhy() {
    const url = realtimeUrl(this.#baseUrl(), { model: this.#options.model });
    return diagnose(url, this.#secret, (...request) => fetch(...request));
  }

  /** @param {{ attempt: number, wait_s: number }} attempt */
  #reconnecting(attempt) {
    this.isReconnecting = true;
    this.#events.emit("reconnecting", attempt);
    this.#changed();
  }

  /** @param {{ gap_s: number, attempts: number, dropped_ms: number }} back */
  #reconnected(back) {
    this.isReconnecting = false;
    if (back.dropped_ms > 0) {
      const seconds = Math.ceil(back.dropped_ms / 1000);
      this.#events.emit("notice", `The first ${seconds} s of what you said meanwhile were lost.`);
    }
    this.#events.emit("reconnected", back);
    this.#changed();
  }

  /**
   * The line is gone, and none could take its place.
   * @param {Closing} closing
   */
  async #closed(closing) {
    const { problem, isBlocked, wasOpen } = closing;
    if (isBlocked && this.#options.fallback && problem) return this.#fallBack(problem);
    if (problem) return this.#fail(problem);
    const lastErrorCode = this.#conversation?.lastErrorCode ?? "";
    if (this.phase === "live" || wasOpen) {
      return this.#fail(problems.closingProblem(closing, lastErrorCode));
    }
    const attempt = this.#attempt;
    const refusal = await this.#askWhy();
    if (attempt === this.#attempt) this.#fail(problems.refusalProblem(refusal));
  }

  /** @param {Problem} problem of the line that did not get through */
  #fallBack({ text }) {
    this.#transport?.close();
    this.#events.emit("notice", `${text} The call goes over WebSocket instead.`);
    void this.#dial("websocket", this.hasMicrophone);
  }

  #microphoneLost() {
    this.hasMicrophone = false;
    this.#tell(problems.microphoneLost());
    this.#changed();
  }

  /** @param {Problem | null} problem */
  #tell(problem) {
    this.#problemKind = problem?.kind ?? "";
    this.#events.emit("problem", problem);
  }

  /** @param {string} kind of a problem that has solved itself */
  #settle(kind) {
    if (this.#problemKind === kind) this.#tell(null);
  }

  /** @param {Problem} problem */
  #fail(problem) {
    const starting = this.#starting;
    this.#starting = null;
    this.#stop();
    this.#tell(problem);
    starting?.reject(new CallError(problem));
  }

  #stop() {
    this.#attempt += 1;
    this.#starting?.reject(new CallError(problems.hungUp()));
    this.#starting = null;
    this.#transport?.close();
    this.#microphone.close();
    this.#tools?.end();
    this.#conversation?.end();
    this.#transport = null;
    this.#tools = null;
    this.#hadInstructions = false;
    this.hasMicrophone = false;
    this.isMuted = false;
    this.isReconnecting = false;
    this.#microphone.setMuted(false);
    this.#setPhase(this.#hadCall ? "ended" : "idle");
  }

  /** @param {Phase} phase */
  #setPhase(phase) {
    this.phase = phase;
    this.#changed();
  }

  #changed() {
    const { phase, floor, hasMicrophone, isMuted, isReconnecting, transport } = this;
    const state = { phase, floor, hasMicrophone, isMuted, isReconnecting, transport };
    this.#events.emit("state", state);
  }
}
