import assert from "node:assert/strict";
import { test } from "node:test";
import { Transcript } from "../../../duologue/web_demo/sdk/call/transcript.js";

const brief = (transcript) =>
  transcript.entries.map(({ speaker, state, text }) => [speaker, state, text]);

test("your words grow and then stand", () => {
  const transcript = new Transcript();
  transcript.userSpeaks("u1");
  assert.deepEqual(brief(transcript), [["you", "listening", ""]]);
  transcript.userText("u1", "Hello ");
  transcript.userCommitted("u1", null);
  transcript.userText("u1", "there");
  assert.deepEqual(brief(transcript), [["you", "partial", "Hello there"]]);
  transcript.userFinal("u1", "Hello there.");
  assert.deepEqual(brief(transcript), [["you", "final", "Hello there."]]);
});

test("a false alarm leaves nothing behind", () => {
  const transcript = new Transcript();
  transcript.userSpeaks("u1");
  transcript.userSpeaks("u2");
  assert.deepEqual(transcript.entries.map(({ id }) => id), ["u2"]);
});

test("a turn whose text is late survives the next one", () => {
  const transcript = new Transcript();
  transcript.userSpeaks("u1");
  transcript.userCommitted("u1", null);
  transcript.userSpeaks("u2");
  transcript.userFinal("u1", "First.");
  assert.deepEqual(brief(transcript), [["you", "final", "First."], ["you", "listening", ""]]);
});

test("a cough that has no words is taken away again", () => {
  const transcript = new Transcript();
  const removed = [];
  transcript.onRemove = (id) => removed.push(id);
  transcript.userSpeaks("u1");
  transcript.userCommitted("u1", null);
  transcript.userFinal("u1", " ");
  assert.deepEqual(removed, ["u1"]);
  assert.deepEqual(transcript.entries, []);
});

test("the order is the conversation's, whatever arrives first", () => {
  const transcript = new Transcript();
  transcript.userFinal("u1", "One.");
  transcript.answerText("a1", "Two.");
  transcript.answerText("a2", "Four.");
  transcript.userCommitted("u2", "a1");
  assert.deepEqual(transcript.entries.map(({ id }) => id), ["u1", "a1", "u2", "a2"]);
});

test("an entry that was put down too late moves to its place", () => {
  const transcript = new Transcript();
  transcript.userFinal("u1", "One.");
  transcript.answerText("a1", "Three.");
  transcript.userSpeaks("u2");
  transcript.userCommitted("u2", "u1");
  assert.deepEqual(transcript.entries.map(({ id }) => id), ["u1", "u2", "a1"]);
});

test("an answer is heard word by word and then whole", () => {
  const transcript = new Transcript();
  transcript.answerText("a1", "Good morning.");
  transcript.answerHeard("a1", 4);
  assert.equal(transcript.entries[0].heardCharacters, 4);
  transcript.answerFinished("a1");
  assert.equal(transcript.entries[0].state, "heard");
  assert.equal(transcript.entries[0].heardCharacters, 13);
});

test("a cut answer keeps what was heard, and text that comes late is not heard", () => {
  const transcript = new Transcript();
  transcript.answerText("a1", "Good morning ");
  transcript.answerCut("a1", 4);
  transcript.answerText("a1", "to you.");
  transcript.answerHeard("a1", 20);
  transcript.answerFinished("a1");
  const [entry] = transcript.entries;
  assert.deepEqual([entry.state, entry.heardCharacters, entry.text], ["cut", 4, "Good morning to you."]);
});

test("an answer that was cut before its first word leaves nothing behind", () => {
  const transcript = new Transcript();
  transcript.answerLatency("a1", 0.5);
  transcript.answerCut("a1", 0);
  assert.deepEqual(transcript.entries, []);
});

test("words that come after all audio was heard count as heard", () => {
  const transcript = new Transcript();
  transcript.answerText("a1", "Yes");
  transcript.answerFinished("a1");
  transcript.answerText("a1", ", of course.");
  assert.equal(transcript.entries[0].heardCharacters, 15);
});

test("when the call ends nothing stays open", () => {
  const transcript = new Transcript();
  transcript.userText("u1", "Half a");
  transcript.answerText("a1", "Well");
  transcript.userSpeaks("u2");
  transcript.close();
  assert.deepEqual(brief(transcript), [["you", "final", "Half a"], ["duologue", "cut", "Well"]]);
});

test("a long conversation forgets its beginning", () => {
  const transcript = new Transcript();
  for (let n = 0; n < 500; n += 1) transcript.userFinal(`u${n}`, `Turn ${n}`);
  assert.equal(transcript.entries.length, 400);
  assert.equal(transcript.entries[0].text, "Turn 100");
});
