import assert from "node:assert/strict";
import { test } from "node:test";
import { InputClock } from "../../../duologue/web_demo/sdk/call/input-clock.js";
import { Latency } from "../../../duologue/web_demo/sdk/call/latency.js";
import { VoiceActivity, loudness } from "../../../duologue/web_demo/sdk/call/loudness.js";

test("a reading is the time from the question to the audible answer", () => {
  const latency = new Latency();
  latency.asked(1000, "spoken");
  assert.deepEqual(latency.answered(1950), { seconds: 0.95, kind: "spoken" });
});

test("a greeting that nobody asked for is no reading", () => {
  assert.equal(new Latency().answered(500), null);
});

test("only the first audible sample of an answer counts", () => {
  const latency = new Latency();
  latency.asked(0, "typed");
  latency.answered(700);
  assert.equal(latency.answered(900), null);
});

test("a question that was taken back is not answered later", () => {
  const latency = new Latency();
  latency.asked(0, "spoken");
  latency.withdrawn();
  assert.equal(latency.answered(900), null);
});

test("the history is bounded and its median is the middle", () => {
  const latency = new Latency();
  for (let n = 1; n <= 100; n += 1) {
    latency.asked(0, "spoken");
    latency.answered(n * 10);
  }
  assert.equal(latency.readings.length, 24);
  assert.equal(latency.median(), 0.885);
});

test("sent time runs with local time while everything is sent", () => {
  const clock = new InputClock();
  for (let n = 0; n < 100; n += 1) clock.sent(40, 5000 + 40 * n);
  assert.equal(clock.localTime(0), 5000);
  assert.equal(clock.localTime(1230), 6230);
});

test("sent time stands still while nothing is sent", () => {
  const clock = new InputClock();
  clock.sent(40, 1000);
  clock.sent(40, 9000);
  assert.equal(clock.localTime(39), 1039);
  assert.equal(clock.localTime(41), 9001);
});

test("a time before anything was sent has no local time", () => {
  assert.equal(new InputClock().localTime(0), null);
});

test("speech ends with the last loud step and not with the silence after it", () => {
  const voice = new VoiceActivity();
  for (let n = 0; n < 200; n += 1) voice.step(n >= 50 && n < 100 ? 0.1 : 0.001, (n + 1) * 20);
  assert.equal(voice.lastVoiced(900, 4000), 2000);
});

test("a noisy room is not taken for a voice", () => {
  const voice = new VoiceActivity();
  for (let n = 0; n < 1000; n += 1) voice.step(0.02, n * 20);
  for (let n = 1000; n < 1100; n += 1) voice.step(0.03, n * 20);
  assert.equal(voice.lastVoiced(19_000, 22_000), null);
});

test("louder is higher, silence is nothing, and no bar leaves its lane", () => {
  const heights = [0, 0.001, 0.01, 0.1, 1].map(loudness);
  assert.equal(heights[0], 0);
  assert.equal(heights.at(-1), 1);
  assert.deepEqual(heights, heights.toSorted((a, b) => a - b));
});
