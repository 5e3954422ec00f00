/**
 * The person's voice on its way to the server: when it is sent, when it was loud, and what time it
 * was here when the server heard it. Knows no events but the one that carries audio.
 */

import { SAMPLE_RATE_HZ, toBase64 } from "../audio/pcm16.js";
import { InputClock } from "./input-clock.js";
import { STEP_MS, VoiceActivity, loudness, steps } from "./loudness.js";

const SAMPLES_PER_MS = SAMPLE_RATE_HZ / 1000;
/** A hand on the button is slower than the mouth: this much from before it is sent too. */
const PRE_ROLL_CHUNKS = 5;
/** A track brings silence while the voice is shut, of which the server holds only so much. */
const CLEAR_EVERY_MS = 10_000;

export class VoiceInput {
  #send;
  #timeline;
  #isSent;
  #clock = new InputClock();
  #voice = new VoiceActivity();
  #isOpen = false;
  /** @type {{ pcm: Int16Array, at_ms: number }[]} */
  #preRoll = [];
  #shut_ms = 0;

  /**
   * @param {(event: import("../wire/line.js").RealtimeEvent) => void} send
   * @param {import("./timeline.js").Timeline} timeline
   * @param {boolean} isSent in events; else the voice has a track of its own
   */
  constructor(send, timeline, isSent) {
    this.#send = send;
    this.#timeline = timeline;
    this.#isSent = isSent;
  }

  /**
   * A chunk from the microphone.
   * @param {Int16Array} pcm
   * @param {number} at_ms local time of its first sample
   */
  hear(pcm, at_ms) {
    for (const { value, step_ms } of steps(pcm, at_ms)) {
      this.#voice.step(value, step_ms + STEP_MS);
      this.#timeline.level("you", step_ms, loudness(value));
    }
    if (!this.#isSent) {
      this.#clearSilence(pcm.length / SAMPLES_PER_MS);
      return;
    }
    this.#preRoll.push({ pcm, at_ms });
    if (this.#isOpen) this.#sendWaiting();
    else if (this.#preRoll.length > PRE_ROLL_CHUNKS) this.#preRoll.shift();
  }

  /** Send from now on, and the little that came just before. */
  open() {
    this.#isOpen = true;
    this.#sendWaiting();
  }

  shut() {
    this.#isOpen = false;
  }

  /**
   * @param {number} sent_ms the server's count of the audio that it got
   * @returns {number | null}
   */
  localTime(sent_ms) {
    return this.#clock.localTime(sent_ms);
  }

  /**
   * @param {number} from_ms
   * @param {number} to_ms
   * @returns {number} when the voice was last heard in between; the end where it never was
   */
  lastVoiced(from_ms, to_ms) {
    return this.#voice.lastVoiced(from_ms, to_ms) ?? to_ms;
  }

  /** @param {number} duration_ms */
  #clearSilence(duration_ms) {
    this.#shut_ms = this.#isOpen ? 0 : this.#shut_ms + duration_ms;
    if (this.#shut_ms < CLEAR_EVERY_MS) return;
    this.#shut_ms = 0;
    this.#send({ type: "input_audio_buffer.clear" });
  }

  #sendWaiting() {
    for (const { pcm, at_ms } of this.#preRoll.splice(0)) {
      this.#clock.sent(pcm.length / SAMPLES_PER_MS, at_ms);
      this.#send({ type: "input_audio_buffer.append", audio: toBase64(pcm) });
    }
  }
}
