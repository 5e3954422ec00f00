import assert from "node:assert/strict";
import { test } from "node:test";
import { PlaybackBuffer } from "../../../duologue/web_demo/sdk/audio/playback-buffer.js";

const QUANTUM = 128;

/** @returns audio in which every sample is a different one */
function ramp(samples, first = 1) {
  return Int16Array.from({ length: samples }, (_, n) => first + n);
}

function play(buffer, quanta) {
  const events = [];
  const samples = [];
  for (let n = 0; n < quanta; n += 1) {
    const output = new Float32Array(QUANTUM);
    events.push(...buffer.render(output));
    samples.push(...output);
  }
  return { events, samples: samples.map((value) => Math.round(value * 32768)) };
}

test("every sample is played once and in order", () => {
  const buffer = new PlaybackBuffer(10_000);
  buffer.append("a", ramp(2000));
  buffer.append("a", ramp(1000, 2001));
  buffer.complete("a");
  const { samples } = play(buffer, 24);
  assert.deepEqual(samples.slice(0, 3000), [...ramp(3000)]);
});

test("samples stay in order when the ring wraps", () => {
  const buffer = new PlaybackBuffer(3000);
  const played = [];
  for (let block = 0; block < 10; block += 1) {
    buffer.append("a", ramp(1280, 1 + block * 1280));
    played.push(...play(buffer, 10).samples);
  }
  assert.deepEqual(played, [...ramp(12_800)]);
});

test("an answer begins only when a little of it is there", () => {
  const buffer = new PlaybackBuffer(10_000);
  buffer.append("a", ramp(500));
  assert.deepEqual(play(buffer, 2).events, []);
  buffer.append("a", ramp(500));
  assert.equal(play(buffer, 1).events[0].type, "started");
});

test("a short answer that is complete does not wait for more", () => {
  const buffer = new PlaybackBuffer(10_000);
  buffer.append("a", ramp(100));
  buffer.complete("a");
  const { events } = play(buffer, 1);
  assert.deepEqual(events.map(({ type }) => type), ["started", "finished"]);
  assert.equal(events[1].playedSamples, 100);
});

test("a flush tells the exact sample and is silent from then on", () => {
  const buffer = new PlaybackBuffer(20_000);
  buffer.append("a", ramp(5000));
  play(buffer, 7);
  assert.deepEqual(buffer.flush(), [{ id: "a", playedSamples: 896, discardedSamples: 4104 }]);
  const { events, samples } = play(buffer, 20);
  assert.deepEqual(events, []);
  assert.ok(samples.slice(300).every((value) => value === 0));
  assert.equal(buffer.queuedSamples, 0);
});

test("a flush names answers that had not begun", () => {
  const buffer = new PlaybackBuffer(20_000);
  buffer.append("a", ramp(2000));
  buffer.append("b", ramp(2000));
  play(buffer, 1);
  assert.deepEqual(
    buffer.flush().map(({ id, playedSamples }) => [id, playedSamples]),
    [["a", 128], ["b", 0]],
  );
});

test("after a flush the next answer is played from its first sample", () => {
  const buffer = new PlaybackBuffer(20_000);
  buffer.append("a", ramp(5000));
  play(buffer, 3);
  buffer.flush();
  buffer.append("b", ramp(2000, 9000));
  const { samples } = play(buffer, 10);
  assert.deepEqual(samples.slice(0, 1280), [...ramp(1280, 9000)]);
});

test("running dry makes the next start more careful, calm answers make it bold again", () => {
  const buffer = new PlaybackBuffer(200_000);
  const bold = buffer.startSamples;
  buffer.append("a", ramp(1000));
  play(buffer, 20);
  assert.ok(buffer.startSamples > bold);
  buffer.append("a", ramp(1000));
  buffer.complete("a");
  play(buffer, 20);
  for (let n = 0; n < 8; n += 1) {
    buffer.append(`calm ${n}`, ramp(200));
    buffer.complete(`calm ${n}`);
    play(buffer, 20);
  }
  assert.equal(buffer.startSamples, bold);
});

test("the start never waits for more than its limit", () => {
  const buffer = new PlaybackBuffer(200_000);
  for (let n = 0; n < 50; n += 1) {
    buffer.append("a", ramp(10_000));
    play(buffer, 100);
  }
  assert.equal(buffer.startSamples, 9600);
});

test("a pause in the middle of an answer loses and repeats nothing", () => {
  const buffer = new PlaybackBuffer(20_000);
  buffer.append("a", ramp(1280));
  const before = play(buffer, 15).samples;
  buffer.append("a", ramp(5000, 1281));
  const after = play(buffer, 10).samples;
  assert.deepEqual(before.slice(0, 1280), [...ramp(1280)]);
  assert.deepEqual(after, [...ramp(1280, 1281)]);
});

test("a full buffer refuses the newest audio and says how much", () => {
  const buffer = new PlaybackBuffer(1000);
  assert.equal(buffer.append("a", ramp(900)), 0);
  assert.equal(buffer.append("a", ramp(300)), 200);
  assert.equal(buffer.queuedSamples, 1000);
});

test("sound that stops in mid-wave fades and does not click", () => {
  const buffer = new PlaybackBuffer(10_000);
  buffer.append("a", new Int16Array(2000).fill(20_000));
  play(buffer, 2);
  buffer.flush();
  const { samples } = play(buffer, 3);
  const jumps = samples.map((value, n) => Math.abs(value - (samples[n - 1] ?? 20_000)));
  assert.ok(Math.max(...jumps) < 1000, `a jump of ${Math.max(...jumps)}`);
  assert.equal(samples.at(-1), 0);
});
