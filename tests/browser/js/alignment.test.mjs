import assert from "node:assert/strict";
import { test } from "node:test";
import { Alignment } from "../../../duologue/web_demo/sdk/call/alignment.js";

const S = 24_000;
const FIRST = "The capital of France is Paris. "; // 32 characters
const SECOND = "It lies on the river Seine.";

/** A sentence of text, then its audio, at 16 characters a second. */
function say(alignment, text) {
  for (const word of text.match(/\S+\s*/g)) alignment.addText(word);
  alignment.addAudio((text.length * S) / 16);
}

function heard(alignment, seconds) {
  return alignment.text.slice(0, alignment.heardCharacters(seconds * S));
}

test("nothing is heard before anything is played", () => {
  const alignment = new Alignment();
  say(alignment, FIRST);
  assert.equal(heard(alignment, 0), "");
});

test("half the audio is half the words, and only whole ones", () => {
  const alignment = new Alignment();
  say(alignment, FIRST);
  alignment.completeAudio();
  assert.equal(heard(alignment, 1), "The capital of");
});

test("a word counts once its middle has been heard", () => {
  const alignment = new Alignment();
  say(alignment, FIRST);
  alignment.completeAudio();
  assert.equal(heard(alignment, 7 / 16), "The");
  assert.equal(heard(alignment, 8 / 16), "The capital");
});

test("everything is heard when everything was played", () => {
  const alignment = new Alignment();
  say(alignment, FIRST);
  say(alignment, SECOND);
  alignment.completeAudio();
  assert.equal(heard(alignment, 60), FIRST + SECOND);
});

test("text that came with later audio is not heard with the earlier", () => {
  const alignment = new Alignment();
  alignment.addText(FIRST);
  alignment.addAudio(4 * S); // slowly spoken
  alignment.addText(SECOND);
  alignment.addAudio(1.5 * S);
  alignment.completeAudio();
  assert.equal(heard(alignment, 3.9).trim(), FIRST.trim());
  assert.equal(heard(alignment, 4.8), FIRST + "It lies on the");
});

test("words whose audio is still to come are not heard with what has arrived", () => {
  const alignment = new Alignment();
  alignment.addText("One two three four five six seven eight.");
  alignment.addAudio(0.4 * S);
  assert.equal(heard(alignment, 0.4), "One two");
});

test("a server that sends all text first is aligned evenly", () => {
  const alignment = new Alignment();
  alignment.addText(FIRST + SECOND);
  alignment.addAudio(2 * S);
  alignment.addAudio(2 * S);
  alignment.completeAudio();
  assert.equal(heard(alignment, 2).trim(), FIRST.trim());
});

test("a server that sends all audio first is aligned evenly", () => {
  const alignment = new Alignment();
  alignment.addAudio(4 * S);
  for (const word of (FIRST + SECOND).match(/\S+\s*/g)) alignment.addText(word);
  alignment.completeAudio();
  assert.equal(heard(alignment, 2).trim(), FIRST.trim());
});

test("what was heard only grows while playback goes on", () => {
  const alignment = new Alignment();
  let before = 0;
  for (let step = 0; step < 60; step += 1) {
    if (step % 20 === 0) say(alignment, step === 20 ? SECOND : FIRST);
    const now = alignment.heardCharacters(step * 0.05 * S);
    assert.ok(now >= before, `${now} after ${before} at step ${step}`);
    before = now;
  }
});

test("it ends on a border between words, wherever playback stops", () => {
  const alignment = new Alignment();
  say(alignment, FIRST + SECOND);
  alignment.completeAudio();
  for (let ms = 0; ms < 4000; ms += 7) {
    const at = alignment.heardCharacters((ms / 1000) * S);
    const next = alignment.text[at];
    assert.ok(at === 0 || next === undefined || next === " ", `split before "${next}" at ${ms} ms`);
  }
});
