/**
 * Streaming sample-rate conversion with a windowed-sinc filter, one table row per output phase.
 * Any chunking of the input gives the same output. Knows nothing of Web Audio.
 */

/** Zero crossings of the sinc on each side, at the lower of the two rates. */
const ZERO_CROSSINGS = 16;
/** Kaiser window: about 80 dB of stop band. */
const KAISER_BETA = 8;
/** Pass band as a share of the lower Nyquist frequency; the rest is the filter's slope. */
const PASS_BAND = 0.92;

export class Resampler {
  #up;
  #down;
  #taps;
  /** @type {Float32Array[]} */
  #table;
  #window;
  #filled;
  /** Place of the next output sample within the input, in steps of 1/up. */
  #phase = 0;

  /**
   * @param {number} inputRateHz
   * @param {number} outputRateHz
   * @param {number} [maxInputSamples] longest input of one `process` call
   */
  constructor(inputRateHz, outputRateHz, maxInputSamples = 4096) {
    const divisor = greatestCommonDivisor(inputRateHz, outputRateHz);
    this.#up = outputRateHz / divisor;
    this.#down = inputRateHz / divisor;
    const isIdentity = this.#up === 1 && this.#down === 1;
    const cutoff = Math.min(1, outputRateHz / inputRateHz);
    this.#taps = isIdentity ? 1 : 2 * Math.ceil(ZERO_CROSSINGS / cutoff);
    this.#table = isIdentity
      ? [Float32Array.of(1)]
      : filterTable(this.#up, this.#taps, cutoff * PASS_BAND);
    this.#window = new Float32Array(this.#taps + maxInputSamples);
    // The filter is centred on its output sample: half a filter of silence stands before the input.
    this.#filled = isIdentity ? 0 : this.#taps / 2 - 1;
  }

  /**
   * @param {number} inputSamples
   * @returns {number} the most samples that `process` may write for so many
   */
  maxOutputSamples(inputSamples) {
    return Math.ceil((inputSamples * this.#up) / this.#down) + 1;
  }

  /**
   * @param {Float32Array} input
   * @param {Float32Array} output room for `maxOutputSamples(input.length)`
   * @returns {number} samples written
   */
  process(input, output) {
    this.#window.set(input, this.#filled);
    this.#filled += input.length;
    let start = 0;
    let written = 0;
    while (start + this.#taps <= this.#filled) {
      const filter = this.#table[this.#phase];
      let sum = 0;
      for (let tap = 0; tap < this.#taps; tap += 1) sum += filter[tap] * this.#window[start + tap];
      output[written] = sum;
      written += 1;
      this.#phase += this.#down;
      start += Math.floor(this.#phase / this.#up);
      this.#phase %= this.#up;
    }
    // A filter is longer than one step, so the next window never begins beyond what has arrived.
    this.#window.copyWithin(0, start, this.#filled);
    this.#filled -= start;
    return written;
  }
}

/**
 * @param {number} phases
 * @param {number} taps
 * @param {number} cutoff as a share of the input's Nyquist frequency
 * @returns {Float32Array[]} for each phase its taps, with unit gain at 0 Hz
 */
function filterTable(phases, taps, cutoff) {
  return Array.from({ length: phases }, (_, phase) => {
    const row = new Float32Array(taps);
    let gain = 0;
    for (let tap = 0; tap < taps; tap += 1) {
      const distance = tap - (taps / 2 - 1) - phase / phases;
      row[tap] = cutoff * sinc(cutoff * distance) * kaiser(distance / (taps / 2));
      gain += row[tap];
    }
    return row.map((value) => value / gain);
  });
}

/** @param {number} x */
function sinc(x) {
  return x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x);
}

/** @param {number} x place in the window, -1 to 1 */
function kaiser(x) {
  return Math.abs(x) > 1 ? 0 : besselI0(KAISER_BETA * Math.sqrt(1 - x * x)) / besselI0(KAISER_BETA);
}

/** @param {number} x */
function besselI0(x) {
  let sum = 1;
  let term = 1;
  for (let k = 1; term > sum * 1e-12; k += 1) {
    term *= (x / (2 * k)) ** 2;
    sum += term;
  }
  return sum;
}

/**
 * @param {number} a
 * @param {number} b
 * @returns {number}
 */
function greatestCommonDivisor(a, b) {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}
