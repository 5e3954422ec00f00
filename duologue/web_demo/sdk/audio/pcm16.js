/**
 * The wire's audio: 16-bit little-endian mono at 24 kHz, carried as base64.
 * Knows nothing of devices or of messages.
 */

export const SAMPLE_RATE_HZ = 24000;

/** Bytes per call of String.fromCharCode: well below the argument limit of every engine. */
const BASE64_SLICE_BYTES = 8192;

/**
 * @param {Float32Array} samples nominal range -1 to 1; louder is clipped
 * @returns {Int16Array<ArrayBuffer>}
 */
export function fromFloat(samples) {
  const pcm = new Int16Array(samples.length);
  for (let i = 0; i < samples.length; i += 1) {
    const scaled = Math.round(samples[i] * 32767);
    pcm[i] = scaled > 32767 ? 32767 : scaled < -32768 ? -32768 : scaled;
  }
  return pcm;
}

/**
 * @param {Int16Array} pcm
 * @returns {string}
 */
export function toBase64(pcm) {
  const bytes = new Uint8Array(pcm.buffer, pcm.byteOffset, pcm.byteLength);
  let text = "";
  for (let at = 0; at < bytes.length; at += BASE64_SLICE_BYTES) {
    text += String.fromCharCode(...bytes.subarray(at, at + BASE64_SLICE_BYTES));
  }
  return btoa(text);
}

/**
 * A trailing odd byte is dropped: half a sample cannot be played.
 * @param {string} base64
 * @returns {Int16Array<ArrayBuffer>}
 */
export function fromBase64(base64) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length - (text.length % 2));
  for (let i = 0; i < bytes.length; i += 1) bytes[i] = text.charCodeAt(i);
  return new Int16Array(bytes.buffer);
}

/**
 * @param {Int16Array} pcm
 * @param {number} [from]
 * @param {number} [to]
 * @returns {number} root mean square of pcm[from:to], 0 to 1
 */
export function rms(pcm, from = 0, to = pcm.length) {
  if (to <= from) return 0;
  let sum = 0;
  for (let i = from; i < to; i += 1) sum += pcm[i] * pcm[i];
  return Math.sqrt(sum / (to - from)) / 32768;
}
