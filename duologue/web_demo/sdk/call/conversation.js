/**
 * What the events of a call mean: who has the floor, what is played, what an interruption cuts.
 * Talks to the wire and to the speaker through small ports; knows no DOM, socket or device.
 */

import { SAMPLE_RATE_HZ, fromBase64 } from "../audio/pcm16.js";
import { AnswerSound } from "./answer-sound.js";
import { Answers } from "./answers.js";
import { VoiceInput } from "./voice-input.js";

/** @typedef {import("../wire/line.js").RealtimeEvent} RealtimeEvent */
/** @typedef {import("./answer.js").Answer} Answer */
/** @typedef {import("../audio/playback.js").PlaybackReport} PlaybackReport */

/**
 * @typedef {object} Speaker
 * @property {(id: string, pcm: Int16Array) => void} append
 * @property {(id: string) => void} complete
 * @property {() => Promise<{ id: string, playedSamples: number }[]>} flush
 */

/**
 * @typedef {object} Parts
 * @property {(event: RealtimeEvent) => void} send
 * @property {Speaker} speaker
 * @property {import("./heard-reports.js").HeardReports} heard
 * @property {import("./transcript.js").Transcript} transcript
 * @property {import("./timeline.js").Timeline} timeline
 * @property {import("./latency.js").Latency} latency
 * @property {() => number} now milliseconds
 */

/** @typedef {{ you: boolean, duologue: boolean, thinking: boolean }} Floor */

const MIN_PRESS_MS = 200;
const SAMPLES_PER_MS = SAMPLE_RATE_HZ / 1000;

/** Errors that answer a race which the person need not know of. */
const HARMLESS = new Set([
  "response_cancel_not_active",
  "item_truncate_invalid_item_id",
  "item_retrieve_invalid_item_id",
  "input_audio_buffer_commit_empty",
]);

export class Conversation {
  #parts;
  #voice;
  #sound;
  #answers = new Answers();
  /** @type {string | null} */
  #activeResponse = null;
  /** Interrupted ones: what still arrives of them is not played. @type {Set<string>} */
  #silenced = new Set();
  #turnStart_ms = 0;
  #isLive = false;
  #isManual = false;
  #isPressed = false;
  #typed = 0;

  /** @type {Floor} */
  floor = { you: false, duologue: false, thinking: false };
  lastErrorCode = "";
  /** @type {() => void} */
  onFloor = () => {};
  /** @type {(isOpen: boolean) => void} the person's voice is to reach the server, or not */
  onVoice = () => {};
  /** @type {(text: string) => void} something the person should know, once */
  onNotice = () => {};

  /** @param {Parts} parts */
  constructor(parts) {
    this.#parts = parts;
    this.#voice = new VoiceInput(parts.send, parts.timeline, !parts.heard.isServerPlaying);
    this.#sound = new AnswerSound(parts);
    this.#sound.onAudible = () => this.#setFloor({ thinking: false });
  }

  /** @param {boolean} isManual the person presses a button to speak */
  setManual(isManual) {
    this.#isManual = isManual;
    this.#isPressed = false;
    this.#directVoice();
  }

  /**
   * A chunk from the microphone.
   * @param {Int16Array} pcm
   * @param {number} at_ms local time of its first sample
   */
  hear(pcm, at_ms) {
    this.#voice.hear(pcm, at_ms);
  }

  /**
   * A chunk of what the server plays.
   * @param {Int16Array} pcm
   * @param {number} at_ms local time of its first sample
   */
  hearAnswer(pcm, at_ms) {
    this.#sound.hear(pcm, at_ms, this.#answers.playing());
  }

  /** The person wants quiet: the answer stops, and none follows. */
  async interrupt() {
    await this.#takeFloor();
    this.#setFloor({ thinking: false });
  }

  /** The button of push-to-talk goes down. */
  press() {
    if (!this.#isManual || this.#isPressed) return;
    const now = this.#parts.now();
    void this.#takeFloor();
    this.#parts.send({ type: "input_audio_buffer.clear" });
    this.#isPressed = true;
    this.#turnStart_ms = now;
    this.#directVoice();
    this.#parts.timeline.startTurn("you", now);
    this.#setFloor({ you: true, thinking: false });
  }

  /** The button of push-to-talk comes up. */
  release() {
    if (!this.#isPressed) return;
    const { send, now, timeline } = this.#parts;
    this.#isPressed = false;
    this.#directVoice();
    timeline.endTurn("you", now());
    if (now() - this.#turnStart_ms < MIN_PRESS_MS) {
      send({ type: "input_audio_buffer.clear" });
      this.#setFloor({ you: false, thinking: false });
      this.onNotice("Hold the button for as long as you speak.");
      return;
    }
    send({ type: "input_audio_buffer.commit" });
    send({ type: "response.create" });
    this.#asked(this.#voice.lastVoiced(this.#turnStart_ms, now()), "spoken");
    this.#setFloor({ you: false, thinking: true });
  }

  /**
   * What the person typed; it interrupts like speech.
   * @param {string} text
   */
  async type(text) {
    const { send, transcript, now } = this.#parts;
    this.#typed += 1;
    const id = `item_typed_${Math.round(now())}_${this.#typed}`;
    const interruption = this.#takeFloor();
    transcript.userFinal(id, text);
    this.#asked(now(), "typed");
    this.#setFloor({ thinking: true });
    await interruption;
    const content = [{ type: "input_text", text }];
    send({
      type: "conversation.item.create",
      item: { id, type: "message", role: "user", content },
    });
    send({ type: "response.create" });
  }

  /** @param {RealtimeEvent} event from the server */
  receive(event) {
    this.#handlers[event.type]?.(event);
  }

  /** @param {PlaybackReport} report */
  played({ type, id, playedSamples, at_ms }) {
    const { timeline, transcript, heard } = this.#parts;
    const answer = this.#answers.find(id);
    if (!answer || answer.isOver) return;
    if (type === "started") {
      timeline.startTurn("duologue", at_ms);
      this.#setFloor({ duologue: true });
    }
    this.#sound.drawPlayed(answer, playedSamples, at_ms);
    this.#sound.noteAudible(answer, at_ms);
    heard.played(answer, type === "finished");
    if (type === "finished") {
      answer.end();
      transcript.answerFinished(id);
      timeline.endTurn("duologue", at_ms);
      this.#setFloor({ duologue: false, thinking: this.#activeResponse !== null });
    } else {
      transcript.answerHeard(id, answer.heardCharacters);
    }
  }

  /** @returns {number[]} levels of audio that has arrived and is still to be played, 20 ms each */
  upcoming() {
    return this.#answers.open().flatMap((answer) => answer.upcoming());
  }

  /** The call is over. */
  end() {
    const { timeline, transcript, now } = this.#parts;
    for (const { id, heardCharacters } of this.#answers.open()) transcript.answerCut(id, heardCharacters);
    this.#answers.clear();
    transcript.close();
    timeline.endTurn("you", now());
    timeline.endTurn("duologue", now());
    timeline.wait(null);
    this.#setFloor({ you: false, duologue: false, thinking: false });
  }

  /** @type {{ [type: string]: (event: RealtimeEvent) => void }} */
  #handlers = {
    "session.created": () => {
      this.#isLive = true;
      this.#directVoice();
    },
    "input_audio_buffer.speech_started": (event) => this.#speechStarted(event),
    "input_audio_buffer.speech_stopped": (event) => this.#speechStopped(event),
    "input_audio_buffer.committed": ({ item_id, previous_item_id }) =>
      this.#parts.transcript.userCommitted(item_id, previous_item_id),
    "conversation.item.input_audio_transcription.delta": ({ item_id, delta }) =>
      this.#parts.transcript.userText(item_id, delta),
    "conversation.item.input_audio_transcription.completed": (event) => this.#transcribed(event),
    "conversation.item.input_audio_transcription.failed": ({ item_id }) =>
      this.#parts.transcript.userFailed(item_id),
    "conversation.item.truncated": ({ item_id }) => this.#truncated(item_id),
    "conversation.item.retrieved": ({ item }) => this.#retrieved(item),
    "response.created": ({ response }) => {
      this.#activeResponse = response.id;
      this.#setFloor({ thinking: !this.floor.you });
    },
    "response.content_part.added": (event) => {
      if (this.#parts.heard.isServerPlaying && event.part.type === "audio") this.#answer(event);
    },
    "response.output_audio_transcript.delta": (event) => this.#answerText(event),
    "response.output_audio_transcript.done": ({ item_id, transcript }) =>
      this.#parts.transcript.answerWhole(item_id, transcript),
    "response.output_text.delta": ({ item_id, delta }) =>
      this.#parts.transcript.answerText(item_id, delta),
    "response.output_text.done": ({ item_id }) => this.#parts.transcript.answerFinished(item_id),
    "response.output_audio.delta": (event) => this.#answerAudio(event),
    "response.output_audio.done": ({ item_id }) => this.#complete(this.#answers.find(item_id)),
    "response.done": ({ response }) => this.#responseDone(response),
    "session.resync_required": (event) => this.#resync(event),
    error: ({ error }) => this.#failed(error),
  };

  /** Sent is what belongs to a turn: everything where the server finds the turns by itself. */
  #directVoice() {
    const isOpen = this.#isLive && (!this.#isManual || this.#isPressed);
    if (isOpen) this.#voice.open();
    else this.#voice.shut();
    this.onVoice(isOpen);
  }

  /** @param {RealtimeEvent} event */
  #speechStarted({ item_id, audio_start_ms }) {
    const { timeline, transcript, now } = this.#parts;
    void this.#interrupt();
    this.#turnStart_ms = this.#voice.localTime(audio_start_ms) ?? now();
    timeline.startTurn("you", this.#turnStart_ms);
    transcript.userSpeaks(item_id);
    this.#setFloor({ you: true, thinking: false });
  }

  /** @param {RealtimeEvent} event */
  #speechStopped({ audio_end_ms }) {
    const { timeline, now } = this.#parts;
    // Some servers count the silence that ended the turn as part of it; people do not.
    const stopped_ms = this.#voice.localTime(audio_end_ms) ?? now();
    const silent_ms = this.#voice.lastVoiced(this.#turnStart_ms, stopped_ms);
    timeline.endTurn("you", silent_ms);
    this.#asked(silent_ms, "spoken");
    this.#setFloor({ you: false, thinking: true });
  }

  /** @param {RealtimeEvent} event */
  #transcribed({ item_id, transcript }) {
    this.#parts.transcript.userFinal(item_id, transcript);
    if (transcript.trim() === "" && !this.#activeResponse) this.#nothingComes();
  }

  #nothingComes() {
    this.#parts.timeline.wait(null);
    this.#setFloor({ thinking: false });
  }

  /** @param {RealtimeEvent} event */
  #answerText(event) {
    const answer = this.#answer(event);
    answer.addText(event.delta);
    const { transcript } = this.#parts;
    // An answer that was withdrawn before it began leaves no trace; one that was cut shows its rest.
    if (answer.isOver && !transcript.find(answer.id)) return;
    transcript.answerText(answer.id, event.delta);
  }

  /** @param {RealtimeEvent} event */
  #answerAudio(event) {
    const answer = this.#answer(event);
    if (answer.isOver || this.#silenced.has(event.response_id)) return;
    const pcm = fromBase64(event.delta);
    if (pcm.length === 0) return;
    answer.addAudio(pcm);
    this.#parts.speaker.append(answer.id, pcm);
  }

  /** @param {RealtimeEvent["response"]} response */
  #responseDone({ id, status, status_details }) {
    if (this.#activeResponse === id) this.#activeResponse = null;
    this.#silenced.delete(id);
    const answers = this.#answers.ofResponse(id);
    if (status === "cancelled") this.#cutIfOpen(answers);
    for (const answer of answers) this.#complete(answer);
    if (status === "failed") {
      const reason = status_details?.error?.message ?? "The server gave no reason.";
      this.#parts.transcript.note(`The answer failed: ${reason}`);
    }
    const isWaiting = answers.some((answer) => !answer.isOver && answer.playedSamples === 0);
    if (!isWaiting && !this.#activeResponse) this.#nothingComes();
  }

  /**
   * Something got lost for good. Where it was sound alone, everything else follows.
   * @param {RealtimeEvent} event
   */
  #resync({ reason, snapshot }) {
    const { playback, items, active_response_id } = snapshot;
    const next = new Map();
    for (const { item_id, sent_ms } of playback) next.set(item_id, sent_ms * SAMPLES_PER_MS);
    this.#answers.resumeAt(next);
    if (reason === "sound_gap") return;
    const { transcript, timeline, now } = this.#parts;
    this.#activeResponse = active_response_id;
    for (const id of this.#silenced) if (id !== active_response_id) this.#silenced.delete(id);
    for (const answer of this.#answers.open()) {
      if (answer.responseId === active_response_id) continue;
      if (answer.receivedSamples === 0) answer.end();
      this.#complete(answer);
    }
    transcript.takeUp(items, new Set(this.#answers.open().map(({ id }) => id)));
    timeline.endTurn("you", now());
    this.#setFloor({ you: false });
    const isWaiting = this.#answers.open().some(({ playedSamples }) => playedSamples === 0);
    if (!isWaiting && !active_response_id) this.#nothingComes();
  }

  /** @param {string} itemId */
  #truncated(itemId) {
    const answer = this.#answers.find(itemId);
    if (!answer) return;
    this.#cutIfOpen([answer]);
    this.#parts.heard.truncated(itemId);
  }

  /** @param {RealtimeEvent["item"]} item as the server remembers it: of what was cut, the beginning */
  #retrieved({ id, content }) {
    const [part] = content ?? [];
    const text = part?.transcript ?? "";
    if (this.#answers.find(id)?.text.startsWith(text)) this.#parts.transcript.cutCorrected(id, text.length);
  }

  /** @param {RealtimeEvent["error"]} error */
  #failed({ code, message }) {
    this.lastErrorCode = code ?? "";
    if (!HARMLESS.has(code) && code !== "session_expired") this.onNotice(message);
  }

  /**
   * @param {number} at_ms
   * @param {"spoken" | "typed"} kind
   */
  #asked(at_ms, kind) {
    this.#parts.latency.asked(at_ms, kind);
    this.#parts.timeline.wait(at_ms);
  }

  /** The person speaks by hand (a button, a text), so the server does not cancel by itself. */
  #takeFloor() {
    if (this.#activeResponse) this.#parts.send({ type: "response.cancel" });
    if (this.#answers.playing()) this.#parts.heard.silence();
    return this.#interrupt();
  }

  #interrupt() {
    this.#parts.latency.withdrawn();
    this.#parts.timeline.wait(null);
    if (this.#activeResponse) this.#silenced.add(this.#activeResponse);
    return this.#cut();
  }

  /** @param {(Answer | undefined)[]} answers */
  #cutIfOpen(answers) {
    if (answers.some((answer) => answer && !answer.isOver)) void this.#cut();
  }

  /** Silence at once, then tell the server and the person how much was heard. */
  async #cut() {
    const { speaker, timeline, transcript, heard, now } = this.#parts;
    const open = this.#answers.open();
    if (open.length === 0) return;
    for (const answer of open) answer.end();
    this.#setFloor({ duologue: false });
    const played = await speaker.flush();
    for (const answer of open) {
      const playedSamples = played.find(({ id }) => id === answer.id)?.playedSamples ?? 0;
      this.#sound.drawPlayed(answer, playedSamples, now());
      timeline.cut(now(), answer.upcoming());
      transcript.answerCut(answer.id, answer.heardCharacters);
      heard.cut(answer);
    }
  }

  /** @param {Answer | undefined} answer */
  #complete(answer) {
    if (!answer || this.#parts.heard.isServerPlaying) return;
    answer.completeAudio();
    if (!answer.isOver) this.#parts.speaker.complete(answer.id);
  }

  /**
   * @param {RealtimeEvent} event
   * @returns {Answer}
   */
  #answer(event) {
    const answer = this.#answers.of(event);
    if (this.#silenced.has(event.response_id)) answer.end();
    return answer;
  }

  /** @param {Partial<Floor>} change */
  #setFloor(change) {
    const next = { ...this.floor, ...change };
    const isSame =
      next.you === this.floor.you &&
      next.duologue === this.floor.duologue &&
      next.thinking === this.floor.thinking;
    if (isSame) return;
    this.floor = next;
    this.onFloor();
  }
}
