/**
 * One call after another: dials, joins microphone, wire and speaker, hangs up, says what went wrong.
 * Knows devices and the wire by their modules; knows no DOM.
 */

import { diagnose } from "../wire/diagnosis.js";
import { realtimeUrl } from "../wire/connection.js";
import {
  closingProblem,
  environmentProblem,
  microphoneLost,
  microphoneProblem,
  refusalProblem,
  soundProblem,
  soundSuspended,
} from "../wire/problems.js";
import { Conversation } from "./conversation.js";
import { sessionOf } from "./settings.js";

/** @typedef {import("./settings.js").Settings} Settings */
/** @typedef {import("../wire/problems.js").Problem} Problem */
/** @typedef {"idle" | "connecting" | "live" | "ended"} Phase */

/**
 * @typedef {object} Parts
 * @property {import("../wire/connection.js").Connection} connection
 * @property {import("../audio/microphone.js").Microphone} microphone
 * @property {import("../audio/playback.js").Playback} playback
 * @property {import("./transcript.js").Transcript} transcript
 * @property {import("./timeline.js").Timeline} timeline
 * @property {import("./latency.js").Latency} latency
 * @property {Settings} settings shared with the settings panel, which changes it
 * @property {Window & typeof globalThis} scope
 */

const TURN_DETECTION = "session.audio.input.turn_detection";

export class Call {
  #parts;
  /** Grows with each dialling and hanging up, so that what an older one awaited is dropped. */
  #attempt = 0;
  /** @type {Conversation | null} */
  #conversation = null;
  #hadInstructions = false;
  #hadCall = false;
  #problemKind = "";

  apiKey = "";
  /** @type {Phase} */
  phase = "idle";
  hasMicrophone = false;
  isMuted = false;
  startedAt_ms = 0;
  /** Phase, floor, mute or microphone changed. */
  onChange = () => {};
  /** @type {(problem: Problem | null) => void} null: the last one is over */
  onProblem = () => {};
  /** @type {(text: string) => void} */
  onNotice = () => {};

  /** @param {Parts} parts */
  constructor(parts) {
    this.#parts = parts;
    const { connection, microphone, playback } = parts;
    connection.onClosed = (closing) => void this.#closed(closing);
    connection.onEvent = (event) => this.#receive(event);
    microphone.onChunk = (pcm, at_ms) => this.#conversation?.hear(pcm, at_ms);
    microphone.onLost = () => this.#microphoneLost();
    playback.onReport = (report) => this.#conversation?.played(report);
    playback.onFull = () => this.onNotice("More than two minutes of audio waited; some was dropped.");
    playback.onSuspended = (isSuspended) => {
      if (isSuspended && this.phase === "live") this.#tell(soundSuspended());
      else if (!isSuspended) this.#settle("sound-suspended");
    };
  }

  get floor() {
    return this.#conversation?.floor ?? { you: false, duologue: false, thinking: false };
  }

  get isManual() {
    return this.#parts.settings.turnTaking === "manual";
  }

  /** @returns {number[]} */
  upcoming() {
    return this.#conversation?.upcoming() ?? [];
  }

  /**
   * Call it in the handler of a click, because sound and microphone start in no other place.
   * @param {{ withMicrophone: boolean }} options
   */
  async dial({ withMicrophone }) {
    const { connection, microphone, playback, settings, scope } = this.#parts;
    const hindrance = environmentProblem(scope);
    if (hindrance) return this.#tell(hindrance);
    this.#attempt += 1;
    const attempt = this.#attempt;
    this.#tell(null);
    this.#setPhase("connecting");
    this.#conversation = this.#newConversation();
    const [sound, hearing] = await Promise.allSettled([
      playback.open(),
      withMicrophone ? microphone.open(this.#microphoneOptions()) : null,
    ]);
    if (attempt !== this.#attempt) return;
    if (hearing.status === "rejected" || sound.status === "rejected") {
      // Worklets are fetched now, so a server that has gone meanwhile first shows here.
      const refusal = await this.#askWhy();
      if (attempt !== this.#attempt) return;
      if (refusal.status === 0) return this.#fail(refusalProblem(refusal));
      if (hearing.status === "rejected") return this.#fail(microphoneProblem(hearing.reason));
      if (sound.status === "rejected") return this.#fail(soundProblem(sound.reason));
    }
    this.hasMicrophone = withMicrophone;
    playback.setVolume(settings.volume);
    void this.chooseSpeaker();
    connection.connect(this.#url(), this.apiKey);
  }

  hangUp() {
    this.#stop();
    this.#tell(null);
  }

  /** @param {boolean} isMuted */
  setMuted(isMuted) {
    this.isMuted = isMuted;
    this.#parts.microphone.setMuted(isMuted);
    this.onChange();
  }

  /** @param {string} text */
  type(text) {
    void this.#conversation?.type(text);
  }

  press() {
    if (this.phase === "live") this.#conversation?.press();
  }

  release() {
    this.#conversation?.release();
  }

  resumeSound() {
    this.#parts.playback.resume();
    this.#parts.microphone.resume();
  }

  /** The settings of the conversation changed. */
  applySession() {
    const { connection, settings } = this.#parts;
    this.#conversation?.setManual(this.isManual);
    if (this.phase === "live") connection.send({ type: "session.update", session: this.#session() });
    if (settings.instructions) this.#hadInstructions = true;
    this.onChange();
  }

  /** The settings of the microphone changed. */
  async applyMicrophone() {
    const { microphone } = this.#parts;
    if (this.phase !== "live") return;
    const attempt = this.#attempt;
    try {
      await microphone.open(this.#microphoneOptions());
      if (attempt !== this.#attempt) return;
      this.hasMicrophone = true;
      this.#tell(null);
      this.onChange();
    } catch (error) {
      if (attempt === this.#attempt) this.#tell(microphoneProblem(error));
    }
  }

  async chooseSpeaker() {
    const { playback, settings } = this.#parts;
    try {
      await playback.chooseSpeaker(settings.speakerId);
    } catch {
      this.onNotice("The chosen speaker is not there; the system's own plays instead.");
    }
  }

  /** @returns {import("../audio/microphone.js").MicrophoneOptions} */
  #microphoneOptions() {
    const { microphoneId, echoCancellation, noiseSuppression, autoGainControl } =
      this.#parts.settings;
    return { deviceId: microphoneId, echoCancellation, noiseSuppression, autoGainControl };
  }

  #newConversation() {
    const { connection, playback, transcript, timeline, latency } = this.#parts;
    const conversation = new Conversation({
      send: (event) => connection.send(event),
      speaker: playback,
      transcript,
      timeline,
      latency,
      now: () => performance.now(),
    });
    conversation.setManual(this.isManual);
    conversation.onFloor = () => this.onChange();
    conversation.onNotice = (text) => this.onNotice(text);
    return conversation;
  }

  #askWhy() {
    return diagnose(this.#url(), this.apiKey, (...request) => fetch(...request));
  }

  #url() {
    return realtimeUrl(this.#parts.scope.document.baseURI, this.#parts.settings.model);
  }

  /** @returns {{ [field: string]: any }} */
  #session() {
    const session = sessionOf(this.#parts.settings);
    // Absent means "as it is": instructions that were taken back must be cleared by name.
    return this.#hadInstructions ? { instructions: null, ...session } : session;
  }

  /** @param {import("../wire/connection.js").RealtimeEvent} event */
  #receive(event) {
    if (event.type === "session.created") {
      if (this.#hadCall) {
        this.#parts.transcript.note("A new call: Duologue remembers nothing of the one before.");
      }
      this.#hadCall = true;
      this.#hadInstructions = false;
      this.startedAt_ms = performance.now();
      this.#setPhase("live");
      this.applySession();
    }
    const isRefusal = event.type === "error" && event.error.param?.startsWith(TURN_DETECTION);
    if (isRefusal) this.#leaveTurnTakingToServer();
    else this.#conversation?.receive(event);
  }

  /**
   * An update is refused whole. Where the server cannot take turns as was asked, the rest is sent
   * again, and its own way of taking turns stays in force.
   */
  #leaveTurnTakingToServer() {
    this.onNotice("This server takes turns in its own way: it cannot do what the settings ask for.");
    const { audio, ...session } = this.#session();
    const { turn_detection: _, ...input } = audio.input;
    this.#parts.connection.send({
      type: "session.update",
      session: { ...session, audio: { ...audio, input } },
    });
  }

  /** @param {import("../wire/connection.js").Closing} closing */
  async #closed(closing) {
    const wasLive = this.phase === "live";
    const lastErrorCode = this.#conversation?.lastErrorCode ?? "";
    if (wasLive || closing.wasOpen) return this.#fail(closingProblem(closing, lastErrorCode));
    const attempt = this.#attempt;
    const refusal = await this.#askWhy();
    if (attempt === this.#attempt) this.#fail(refusalProblem(refusal));
  }

  #microphoneLost() {
    this.hasMicrophone = false;
    this.#tell(microphoneLost());
    this.onChange();
  }

  /** @param {Problem | null} problem */
  #tell(problem) {
    this.#problemKind = problem?.kind ?? "";
    this.onProblem(problem);
  }

  /** @param {string} kind of a problem that has solved itself */
  #settle(kind) {
    if (this.#problemKind === kind) this.#tell(null);
  }

  /** @param {Problem} problem */
  #fail(problem) {
    this.#stop();
    this.#tell(problem);
  }

  #stop() {
    const { connection, microphone, playback } = this.#parts;
    this.#attempt += 1;
    connection.close();
    microphone.close();
    playback.close();
    this.#conversation?.end();
    this.hasMicrophone = false;
    this.isMuted = false;
    microphone.setMuted(false);
    this.#setPhase(this.#hadCall ? "ended" : "idle");
  }

  /** @param {Phase} phase */
  #setPhase(phase) {
    this.phase = phase;
    this.onChange();
  }
}
