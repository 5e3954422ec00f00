import assert from "node:assert/strict";
import { test } from "node:test";
import { BIN_MS, Timeline } from "../../../duologue/web_demo/sdk/call/timeline.js";

test("the loudest moment of a bin is its level", () => {
  const timeline = new Timeline();
  timeline.level("you", 1000, 0.2);
  timeline.level("you", 1010, 0.7);
  timeline.level("you", 1020, 0.3);
  const bin = Math.floor(1000 / BIN_MS);
  assert.ok(Math.abs(timeline.levelOf("you", bin) - 0.7) < 1e-6);
  assert.equal(timeline.levelOf("duologue", bin), 0);
});

test("a level of long ago does not come back", () => {
  const timeline = new Timeline();
  timeline.level("you", 0, 0.9);
  assert.equal(timeline.levelOf("you", 512), 0);
  timeline.level("you", 512 * BIN_MS, 0.1);
  assert.equal(timeline.levelOf("you", 0), 0);
});

test("both lanes may have a turn at once", () => {
  const timeline = new Timeline();
  timeline.startTurn("duologue", 0);
  timeline.startTurn("you", 500);
  timeline.cut(600, [0.5]);
  assert.deepEqual(timeline.turns, [
    { lane: "duologue", from_ms: 0, to_ms: 600 },
    { lane: "you", from_ms: 500, to_ms: null },
  ]);
});

test("a turn that was never ended ends where the next one begins", () => {
  const timeline = new Timeline();
  timeline.startTurn("you", 0);
  timeline.startTurn("you", 900);
  assert.equal(timeline.turns[0].to_ms, 900);
});

test("a wait lasts until the answer, unless it is given up", () => {
  const timeline = new Timeline();
  timeline.wait(100);
  timeline.answer(900);
  timeline.wait(2000);
  timeline.wait(null);
  timeline.answer(2500);
  assert.deepEqual(timeline.waits, [{ from_ms: 100, to_ms: 900 }]);
});

test("what has left the picture is forgotten", () => {
  const timeline = new Timeline();
  for (let second = 0; second < 600; second += 2) {
    timeline.startTurn("duologue", second * 1000);
    timeline.cut(second * 1000 + 500, [1]);
  }
  assert.ok(timeline.turns.length < 30, `${timeline.turns.length} turns`);
  assert.ok(timeline.cuts.length < 30, `${timeline.cuts.length} cuts`);
});
