/**
 * One spoken item of Duologue: its words, how loud its audio is, and how much of it was heard.
 * Pure; who plays it is not known here.
 */

import { rms } from "../audio/pcm16.js";
import { Alignment } from "./alignment.js";
import { loudness } from "./loudness.js";

/** One level for every 20 ms of audio. */
export const LEVEL_SAMPLES = 480;
export const LEVEL_MS = 20;

/** Speech synthesis often begins with a breath of silence; quieter than this is not an answer yet. */
export const AUDIBLE_RMS = 0.003;

export class Answer {
  #alignment = new Alignment();
  /** @type {number[]} */
  #levels = [];
  #partial = new Int16Array(0);
  /** @type {number | null} */
  #firstAudibleSample = null;
  #playedSamples = 0;
  /** Of what arrived, without the holes. */
  #arrivedSamples = 0;
  /** Samples that got lost right before the next ones. */
  #missingSamples = 0;
  /** Where some are missing: behind how many that arrived. @type {{ at: number, samples: number }[]} */
  #holes = [];
  #isOver = false;

  /**
   * @param {string} id of the item
   * @param {string} responseId
   * @param {number} contentIndex
   */
  constructor(id, responseId, contentIndex) {
    this.id = id;
    this.responseId = responseId;
    this.contentIndex = contentIndex;
  }

  get text() {
    return this.#alignment.text;
  }

  /** Heard to its end, or cut: no more of it will be played. */
  get isOver() {
    return this.#isOver;
  }

  /** Of what arrived. */
  get playedSamples() {
    return this.#playedSamples;
  }

  /** How far it was heard, counted as the server does: with what got lost in between. */
  get heardSamples() {
    const passed = this.#holes.filter(({ at }) => at < this.#playedSamples);
    return passed.reduce((sum, { samples }) => sum + samples, this.#playedSamples);
  }

  get receivedSamples() {
    return this.#alignment.receivedSamples;
  }

  get heardCharacters() {
    return this.#alignment.heardCharacters(this.heardSamples);
  }

  /** Sample with which the answer becomes audible; null while all of it is silence. */
  get firstAudibleSample() {
    return this.#firstAudibleSample;
  }

  /** @param {string} delta */
  addText(delta) {
    this.#alignment.addText(delta);
  }

  /**
   * Where its next audio begins; what is missing until there never comes. It counts as heard once
   * the audio behind it is.
   * @param {number} samples
   */
  resumeAt(samples) {
    this.#missingSamples = Math.max(0, samples - this.receivedSamples);
  }

  /** @param {Int16Array} pcm */
  addAudio(pcm) {
    if (this.#missingSamples > 0) {
      this.#holes.push({ at: this.#arrivedSamples, samples: this.#missingSamples });
      this.#alignment.addAudio(this.#missingSamples);
      this.#missingSamples = 0;
    }
    this.#arrivedSamples += pcm.length;
    this.#alignment.addAudio(pcm.length);
    const samples = new Int16Array(this.#partial.length + pcm.length);
    samples.set(this.#partial);
    samples.set(pcm, this.#partial.length);
    let at = 0;
    for (; at + LEVEL_SAMPLES <= samples.length; at += LEVEL_SAMPLES) {
      this.#addLevel(rms(samples, at, at + LEVEL_SAMPLES));
    }
    this.#partial = samples.slice(at);
  }

  completeAudio() {
    this.#alignment.completeAudio();
    if (this.#partial.length > 0) this.#addLevel(rms(this.#partial));
    this.#partial = new Int16Array(0);
  }

  /**
   * @param {number} samples
   * @returns {number[]} levels of the stretch that has been played since the last call
   */
  played(samples) {
    const from = Math.ceil(this.#playedSamples / LEVEL_SAMPLES);
    this.#playedSamples = Math.max(this.#playedSamples, samples);
    return this.#levels.slice(from, Math.ceil(this.#playedSamples / LEVEL_SAMPLES));
  }

  /** @returns {number[]} levels of what is still to be played */
  upcoming() {
    return this.#levels.slice(Math.ceil(this.#playedSamples / LEVEL_SAMPLES));
  }

  end() {
    this.#isOver = true;
  }

  /** @param {number} value root mean square */
  #addLevel(value) {
    if (this.#firstAudibleSample === null && value >= AUDIBLE_RMS) {
      this.#firstAudibleSample = this.#levels.length * LEVEL_SAMPLES;
    }
    this.#levels.push(loudness(value));
  }
}
