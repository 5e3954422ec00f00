import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { toBase64 } from "../../../duologue/web_demo/sdk/audio/pcm16.js";
import { Conversation } from "../../../duologue/web_demo/sdk/call/conversation.js";
import { ServerPlays, Truncations } from "../../../duologue/web_demo/sdk/call/heard-reports.js";
import { Latency } from "../../../duologue/web_demo/sdk/call/latency.js";
import { Timeline } from "../../../duologue/web_demo/sdk/call/timeline.js";
import { Transcript } from "../../../duologue/web_demo/sdk/call/transcript.js";

const SECOND = 24_000;

/** A speaker that plays nothing: the test says how far it has come. */
class FakeSpeaker {
  queue = new Map();
  complete = (id) => this.completed.push(id);
  completed = [];

  append(id, pcm) {
    const track = this.queue.get(id) ?? { id, playedSamples: 0, samples: 0 };
    track.samples += pcm.length;
    this.queue.set(id, track);
  }

  async flush() {
    const played = [...this.queue.values()];
    this.queue.clear();
    return played;
  }
}

let now, sent, speaker, transcript, timeline, latency, conversation, notices;

beforeEach(() => {
  now = 10_000;
  sent = [];
  notices = [];
  speaker = new FakeSpeaker();
  transcript = new Transcript();
  timeline = new Timeline();
  latency = new Latency();
  conversation = new Conversation({
    send: (event) => sent.push(event),
    speaker,
    heard: new Truncations((event) => sent.push(event)),
    transcript,
    timeline,
    latency,
    now: () => now,
  });
  conversation.onNotice = (text) => notices.push(text);
  receive("session.created");
});

function receive(type, fields = {}) {
  conversation.receive({ type, event_id: "e", ...fields });
}

function chunk(samples = 960, value = 0) {
  return new Int16Array(samples).fill(value);
}

/** One response with one spoken item: text, then `seconds` of audio. */
function answer(number, text, seconds) {
  const where = { response_id: `r${number}`, item_id: `a${number}`, content_index: 0 };
  receive("response.created", { response: { id: `r${number}` } });
  receive("response.output_audio_transcript.delta", { ...where, delta: text });
  receive("response.output_audio.delta", { ...where, delta: toBase64(chunk(seconds * SECOND, 8000)) });
}

function finish(number, status = "completed", details = null) {
  receive("response.done", { response: { id: `r${number}`, status, status_details: details } });
}

function play(number, seconds) {
  const id = `a${number}`;
  const track = speaker.queue.get(id);
  if (track.playedSamples === 0) conversation.played({ type: "started", id, playedSamples: 128, at_ms: now });
  track.playedSamples = seconds * SECOND;
  conversation.played({ type: "position", id, playedSamples: track.playedSamples, at_ms: now });
}

async function userSpeaks(id = "u1") {
  receive("input_audio_buffer.speech_started", { item_id: id, audio_start_ms: 0 });
  await settled();
}

/** Lets what waits for the speaker go on. */
const settled = () => new Promise((resolve) => setImmediate(resolve));
const types = () => sent.map(({ type }) => type);
const ofType = (type) => sent.filter((event) => event.type === type);

test("speech during an answer silences it and tells the server what was heard", async () => {
  answer(1, "The capital of France is Paris, a city on the river Seine.", 4);
  play(1, 1.2345);
  await userSpeaks();
  assert.equal(speaker.queue.size, 0);
  assert.deepEqual(ofType("conversation.item.truncate"), [
    { type: "conversation.item.truncate", item_id: "a1", content_index: 0, audio_end_ms: 1234 },
  ]);
});

test("the sample that was played when the speaker fell silent counts, not the last report", async () => {
  answer(1, "The capital of France is Paris.", 2);
  play(1, 1);
  speaker.queue.get("a1").playedSamples = 1.02 * SECOND;
  await userSpeaks();
  assert.equal(ofType("conversation.item.truncate")[0].audio_end_ms, 1020);
});

test("an answer that is complete on the wire but still plays is cut too", async () => {
  answer(1, "The capital of France is Paris.", 2);
  finish(1);
  play(1, 0.5);
  await userSpeaks();
  assert.equal(ofType("conversation.item.truncate")[0].audio_end_ms, 500);
  assert.equal(transcript.find("a1").state, "cut");
});

test("an answer that was heard to its end is not cut", async () => {
  answer(1, "Yes.", 1);
  finish(1);
  play(1, 1);
  conversation.played({ type: "finished", id: "a1", playedSamples: SECOND, at_ms: now });
  await userSpeaks();
  assert.deepEqual(ofType("conversation.item.truncate"), []);
  assert.equal(transcript.find("a1").state, "heard");
});

test("audio of an interrupted answer that arrives late is not played", async () => {
  answer(1, "The capital of France is Paris.", 2);
  play(1, 0.5);
  await userSpeaks();
  const where = { response_id: "r1", item_id: "a1", content_index: 0 };
  receive("response.output_audio.delta", { ...where, delta: toBase64(chunk()) });
  finish(1, "cancelled", { type: "cancelled", reason: "turn_detected" });
  receive("response.output_audio.delta", { ...where, delta: toBase64(chunk()) });
  assert.equal(speaker.queue.size, 0);
  assert.equal(ofType("conversation.item.truncate").length, 1);
});

test("an answer that is interrupted before it begins leaves no trace", async () => {
  receive("response.created", { response: { id: "r1" } });
  await userSpeaks();
  const where = { response_id: "r1", item_id: "a1", content_index: 0 };
  receive("response.output_audio_transcript.delta", { ...where, delta: "The" });
  receive("response.output_audio.delta", { ...where, delta: toBase64(chunk()) });
  finish(1, "cancelled");
  await settled();
  assert.equal(speaker.queue.size, 0);
  assert.equal(transcript.find("a1"), undefined);
  assert.deepEqual(ofType("conversation.item.truncate"), []);
});

test("the answer after an interruption is played", async () => {
  answer(1, "One.", 2);
  play(1, 0.5);
  await userSpeaks();
  finish(1, "cancelled");
  answer(2, "Two.", 1);
  assert.deepEqual([...speaker.queue.keys()], ["a2"]);
});

test("a response that the server cancels by itself falls silent as well", async () => {
  answer(1, "The capital of France is Paris.", 2);
  play(1, 0.5);
  finish(1, "cancelled", { type: "cancelled", reason: "client_cancelled" });
  await settled();
  assert.equal(speaker.queue.size, 0);
  assert.equal(transcript.find("a1").state, "cut");
});

test("words turn from on-their-way to heard as samples are played", () => {
  answer(1, "one two three four", 2);
  receive("response.output_audio.done", { item_id: "a1" });
  play(1, 1);
  const entry = transcript.find("a1");
  assert.equal(entry.text.slice(0, entry.heardCharacters), "one two");
});

test("the cut shows on the timeline with what was not heard", async () => {
  answer(1, "The capital of France is Paris.", 2);
  play(1, 0.5);
  await userSpeaks();
  assert.equal(timeline.cuts.length, 1);
  assert.equal(timeline.cuts[0].unheard.length, 75);
  assert.deepEqual(conversation.upcoming(), []);
});

test("a typed message cancels the answer, cuts it, and asks", async () => {
  answer(1, "The capital of France is Paris.", 2);
  play(1, 0.5);
  await conversation.type("And of Italy?");
  assert.deepEqual(types(), [
    "response.cancel",
    "conversation.item.truncate",
    "conversation.item.create",
    "response.create",
  ]);
  assert.deepEqual(sent[2].item.content, [{ type: "input_text", text: "And of Italy?" }]);
  assert.equal(transcript.find(sent[2].item.id).text, "And of Italy?");
});

test("the answer that a typed message cut is not taken for its answer", async () => {
  answer(1, "The capital of France is Paris.", 2);
  play(1, 0.5);
  speaker.queue.get("a1").playedSamples = 0.52 * SECOND;
  await conversation.type("And of Italy?");
  assert.deepEqual(latency.readings, []);
  assert.equal(timeline.waitingSince_ms, now);
});

test("a typed message into silence cancels nothing", async () => {
  await conversation.type("Hello");
  assert.deepEqual(types(), ["conversation.item.create", "response.create"]);
});

test("the microphone is sent as it comes", () => {
  conversation.hear(chunk(960, 7), now);
  assert.deepEqual(sent, [{ type: "input_audio_buffer.append", audio: toBase64(chunk(960, 7)) }]);
});

test("nothing is sent before the session stands", () => {
  const early = new Conversation({ send: (event) => sent.push(event), speaker, heard: new Truncations((event) => sent.push(event)), transcript, timeline, latency, now: () => now });
  early.hear(chunk(), now);
  assert.deepEqual(sent, []);
});

test("push to talk sends only while the button is down, and a little from before", () => {
  conversation.setManual(true);
  for (let n = 0; n < 20; n += 1) conversation.hear(chunk(960, n), now);
  assert.deepEqual(sent, []);
  conversation.press();
  conversation.hear(chunk(960, 20), now);
  now += 1000;
  conversation.release();
  conversation.hear(chunk(960, 21), now);
  assert.deepEqual(types(), [
    "input_audio_buffer.clear",
    ...Array(6).fill("input_audio_buffer.append"),
    "input_audio_buffer.commit",
    "response.create",
  ]);
  assert.equal(sent[1].audio, toBase64(chunk(960, 15)));
});

test("a button that is only tapped asks nothing and explains itself", () => {
  conversation.setManual(true);
  conversation.press();
  now += 100;
  conversation.release();
  assert.deepEqual(types(), ["input_audio_buffer.clear", "input_audio_buffer.clear"]);
  assert.equal(notices.length, 1);
});

test("pressing the button interrupts", async () => {
  conversation.setManual(true);
  answer(1, "The capital of France is Paris.", 2);
  play(1, 0.5);
  conversation.press();
  await settled();
  assert.deepEqual(types().toSorted(), [
    "conversation.item.truncate",
    "input_audio_buffer.clear",
    "response.cancel",
  ]);
});

test("the wait is measured from the last loud moment to the first audible sample", () => {
  for (let n = 0; n < 100; n += 1) {
    conversation.hear(chunk(960, n >= 25 && n < 50 ? 4000 : 5), 10_000 + 40 * n);
  }
  receive("input_audio_buffer.speech_started", { item_id: "u1", audio_start_ms: 900 });
  receive("input_audio_buffer.speech_stopped", { item_id: "u1", audio_end_ms: 2600 });
  now = 13_000;
  receive("response.created", { response: { id: "r1" } });
  const where = { response_id: "r1", item_id: "a1", content_index: 0 };
  const quietThenLoud = chunk(SECOND, 8000).fill(0, 0, 4800);
  receive("response.output_audio.delta", { ...where, delta: toBase64(quietThenLoud) });
  speaker.queue.get("a1").playedSamples = 128;
  conversation.played({ type: "position", id: "a1", playedSamples: 4800 + 480, at_ms: 13_220 });
  // Speech ended at 12.000; of 5280 samples played at 13.220, 480 (20 ms) were audible.
  assert.deepEqual(latency.readings, [{ seconds: 1.2, kind: "spoken" }]);
  assert.equal(transcript.find("a1").latency_s, 1.2);
  assert.deepEqual(timeline.waits, [{ from_ms: 12_000, to_ms: 13_200 }]);
});

test("who has the floor follows speech, thought and playback", async () => {
  const floors = [];
  conversation.onFloor = () => {
    const { you, duologue, thinking } = conversation.floor;
    floors.push([you && "you", duologue && "duologue", thinking && "thinking"].filter(Boolean).join("+"));
  };
  await userSpeaks();
  receive("input_audio_buffer.speech_stopped", { item_id: "u1", audio_end_ms: 0 });
  answer(1, "Yes.", 1);
  finish(1);
  play(1, 0.5);
  conversation.played({ type: "finished", id: "a1", playedSamples: SECOND, at_ms: now });
  assert.deepEqual(floors, ["you", "thinking", "duologue+thinking", "duologue", ""]);
});

test("a failed answer says why", () => {
  receive("response.created", { response: { id: "r1" } });
  finish(1, "failed", { type: "failed", error: { message: "A model failed while answering." } });
  assert.match(transcript.entries.at(-1).text, /A model failed while answering/);
  assert.equal(conversation.floor.thinking, false);
});

test("errors of harmless races stay unsaid, others are told", () => {
  receive("error", { error: { code: "response_cancel_not_active", message: "Cancellation failed" } });
  receive("error", { error: { code: "invalid_value", message: "That voice is not here." } });
  assert.deepEqual(notices, ["That voice is not here."]);
});

test("an event of a kind that is not known changes nothing", () => {
  receive("rate_limits.updated", { rate_limits: [] });
  receive("something.new", {});
  assert.deepEqual(sent, []);
});

test("over a track, push to talk opens the voice, and the silence between is cleared", () => {
  const open = [];
  const call = new Conversation({ send: (event) => sent.push(event), speaker, heard: new ServerPlays(() => {}), transcript, timeline, latency, now: () => now });
  call.onVoice = (isOpen) => open.push(isOpen);
  call.setManual(true);
  call.receive({ type: "session.created" });
  for (let n = 0; n < 500; n += 1) call.hear(chunk(), now);
  assert.deepEqual(sent.map(({ type }) => type), ["input_audio_buffer.clear", "input_audio_buffer.clear"]);
  call.press();
  now += 1000;
  call.release();
  assert.deepEqual(open, [false, false, true, false]);
});
