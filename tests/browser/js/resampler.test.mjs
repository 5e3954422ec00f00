import assert from "node:assert/strict";
import { test } from "node:test";
import { Resampler } from "../../../duologue/web_demo/sdk/audio/resampler.js";

const DEVICE_RATES_HZ = [8000, 16000, 22050, 32000, 44100, 48000, 96000, 192000];

/** @returns a sine of one second, amplitude 0.5 */
function sine(frequencyHz, rateHz) {
  return Float32Array.from({ length: rateHz }, (_, n) =>
    0.5 * Math.sin((2 * Math.PI * frequencyHz * n) / rateHz));
}

function resample(input, fromHz, toHz, chunkSamples) {
  const resampler = new Resampler(fromHz, toHz);
  const parts = [];
  for (let at = 0; at < input.length; at += chunkSamples) {
    const chunk = input.subarray(at, at + chunkSamples);
    const output = new Float32Array(resampler.maxOutputSamples(chunk.length));
    parts.push(...output.subarray(0, resampler.process(chunk, output)));
  }
  return Float32Array.from(parts);
}

/** Root mean square of what is left when the best sine of this frequency is taken away. */
function residue(samples, frequencyHz, rateHz) {
  let [sin, cos] = [0, 0];
  const phase = (n) => (2 * Math.PI * frequencyHz * n) / rateHz;
  samples.forEach((value, n) => {
    sin += (2 * value * Math.sin(phase(n))) / samples.length;
    cos += (2 * value * Math.cos(phase(n))) / samples.length;
  });
  const rest = samples.map((value, n) => value - sin * Math.sin(phase(n)) - cos * Math.cos(phase(n)));
  return { amplitude: Math.hypot(sin, cos), rms: Math.hypot(...rest) / Math.sqrt(rest.length) };
}

for (const rateHz of DEVICE_RATES_HZ) {
  test(`a tone recorded at ${rateHz} Hz is the same tone at 24 kHz`, () => {
    const output = resample(sine(1000, rateHz), rateHz, 24000, 128);
    const middle = output.subarray(2400, 2400 + 19200);
    const { amplitude, rms } = residue(middle, 1000, 24000);
    assert.ok(Math.abs(amplitude - 0.5) < 0.002, `amplitude ${amplitude}`);
    assert.ok(rms < 0.0005, `residue ${rms}`);
  });

  test(`one second at ${rateHz} Hz is one second at 24 kHz`, () => {
    const output = resample(sine(1000, rateHz), rateHz, 24000, 128);
    // Half a filter of the end is still inside: 16 samples of the lower rate.
    assert.ok(output.length > 23_950 && output.length <= 24_000, `${output.length} samples`);
  });
}

test("what 24 kHz cannot carry is taken out and does not fold back", () => {
  const output = resample(sine(15000, 48000), 48000, 24000, 128);
  const loudest = Math.max(...output.subarray(2400, 21600).map(Math.abs));
  assert.ok(loudest < 0.0005, `a ghost of ${loudest}`);
});

test("any chunking gives the same samples", () => {
  const input = sine(700, 44100);
  const whole = resample(input, 44100, 24000, 4096);
  for (const chunkSamples of [1, 127, 128, 1000]) {
    assert.deepEqual(resample(input, 44100, 24000, chunkSamples), whole);
  }
});

test("a device at 24 kHz is passed on unchanged", () => {
  const input = sine(700, 24000);
  assert.deepEqual(resample(input, 24000, 24000, 128), input);
});
