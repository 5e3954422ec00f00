/**
 * Which words of an answer have been heard, from the count of samples played.
 *
 * The Realtime dialect carries no word times. What there is: transcript and audio arrive
 * interleaved, so text that arrives after n samples is spoken at about sample n. Between two such
 * marks the text is taken to flow evenly. Marks that would need impossible speech (a server that
 * sends all text first, or all audio first) are dropped. Pure.
 */

const SAMPLES_PER_S = 24000;
/** Before an answer's own speed is known. */
const USUAL_CHARACTERS_PER_S = 15;
const FASTEST_CHARACTERS_PER_S = 40;
const LONGEST_CHARACTER_S = 0.5;

/** @typedef {{ characters: number, samples: number }} Point */

export class Alignment {
  #text = "";
  /** @type {Point[]} where each run of text that arrived together begins */
  #marks = [];
  #receivedSamples = 0;
  #isAudioComplete = false;

  get receivedSamples() {
    return this.#receivedSamples;
  }

  get text() {
    return this.#text;
  }

  /** @param {string} delta */
  addText(delta) {
    const last = this.#marks.at(-1);
    if (last?.samples !== this.#receivedSamples) {
      this.#marks.push({ characters: this.#text.length, samples: this.#receivedSamples });
    }
    this.#text += delta;
  }

  /** @param {number} samples */
  addAudio(samples) {
    this.#receivedSamples += samples;
  }

  completeAudio() {
    this.#isAudioComplete = true;
  }

  /**
   * @param {number} playedSamples
   * @returns {number} characters heard, up to the end of a word
   */
  heardCharacters(playedSamples) {
    if (this.#isAudioComplete && playedSamples >= this.#receivedSamples) return this.#text.length;
    const points = this.#points();
    const next = points.findIndex(({ samples }) => samples > playedSamples);
    if (next === -1) return this.#text.length;
    if (next === 0) return 0;
    const from = points[next - 1];
    const to = points[next];
    const share = (playedSamples - from.samples) / (to.samples - from.samples);
    return wholeWords(this.#text, from.characters + share * (to.characters - from.characters));
  }

  /** @returns {Point[]} from the first character to the last, each later than the one before */
  #points() {
    const points = [{ characters: 0, samples: 0 }];
    for (const point of [...this.#marks, this.#end()]) {
      points.push(point);
      while (points.length > 2 && (isAbsurd(points, -1) || isAbsurd(points, -2))) points.splice(-2, 1);
    }
    return points;
  }

  /** @returns {Point} */
  #end() {
    const characters = this.#text.length;
    if (this.#isAudioComplete) return { characters, samples: this.#receivedSamples };
    const last = this.#marks.at(-1) ?? { characters: 0, samples: 0 };
    const rest_s = (characters - last.characters) / USUAL_CHARACTERS_PER_S;
    const expected = last.samples + rest_s * SAMPLES_PER_S;
    return { characters, samples: Math.max(this.#receivedSamples, expected) };
  }
}

/**
 * @param {Point[]} points
 * @param {number} index of the point that ends the stretch, from the end
 */
function isAbsurd(points, index) {
  const from = points.at(index - 1);
  const to = points.at(index);
  if (!from || !to) return false;
  const characters = to.characters - from.characters;
  const seconds = (to.samples - from.samples) / SAMPLES_PER_S;
  return (
    seconds <= characters / FASTEST_CHARACTERS_PER_S ||
    seconds > LONGEST_CHARACTER_S * Math.max(1, characters)
  );
}

/**
 * A word counts as heard once its middle has been.
 * @param {string} text
 * @param {number} characters
 */
function wholeWords(text, characters) {
  const position = Math.floor(characters);
  const spaced = text.replace(/\s/g, " ");
  const start = position === 0 ? 0 : spaced.lastIndexOf(" ", position - 1) + 1;
  const nextSpace = spaced.indexOf(" ", position);
  const end = nextSpace === -1 ? text.length : nextSpace;
  return characters >= (start + end) / 2 ? end : Math.max(0, start - 1);
}
