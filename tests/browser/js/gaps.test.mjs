import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { toBase64 } from "../../../duologue/web_demo/sdk/audio/pcm16.js";
import { Conversation } from "../../../duologue/web_demo/sdk/call/conversation.js";
import { PlaybackAcks } from "../../../duologue/web_demo/sdk/call/heard-reports.js";
import { Latency } from "../../../duologue/web_demo/sdk/call/latency.js";
import { Timeline } from "../../../duologue/web_demo/sdk/call/timeline.js";
import { Transcript } from "../../../duologue/web_demo/sdk/call/transcript.js";

const MS = 24;

let sent, transcript, conversation, completed;

beforeEach(() => {
  sent = [];
  completed = [];
  transcript = new Transcript();
  conversation = new Conversation({
    send: (event) => sent.push(event),
    speaker: { append: () => {}, complete: (id) => completed.push(id), flush: async () => [] },
    heard: new PlaybackAcks((event) => sent.push(event)),
    transcript,
    timeline: new Timeline(),
    latency: new Latency(),
    now: () => 10_000,
  });
  receive("session.created");
});

function receive(type, fields = {}) {
  conversation.receive({ type, ...fields });
}

const where = (number) => ({ response_id: `r${number}`, item_id: `a${number}`, content_index: 0 });

function begin(number) {
  receive("response.created", { response: { id: `r${number}` } });
}

function words(number, delta) {
  receive("response.output_audio_transcript.delta", { ...where(number), delta });
}

function sound(number, milliseconds) {
  const delta = toBase64(new Int16Array(milliseconds * MS).fill(8000));
  receive("response.output_audio.delta", { ...where(number), delta });
}

function finish(number) {
  receive("response.done", { response: { id: `r${number}`, status: "completed" } });
}

/** The speaker has played so much of what arrived; returns what the server is told. */
function play(number, milliseconds, type = "position") {
  conversation.played({ type, id: `a${number}`, playedSamples: milliseconds * MS, at_ms: 10_000 });
  return sent.filter((event) => event.type === "playback.ack").at(-1)?.played_ms;
}

function resync(reason, { items = [], next = {}, active = null } = {}) {
  const playback = Object.entries(next).map(([item_id, sent_ms]) => ({ item_id, sent_ms, heard_ms: 0 }));
  receive("session.resync_required", {
    reason,
    snapshot: { session: {}, items, playback, active_response_id: active, server_event_seq: 99 },
  });
}

const message = (id, role, text, status = "completed") => ({
  id,
  type: "message",
  role,
  status,
  content: [role === "user" ? { type: "input_audio", transcript: text } : { type: "output_audio", transcript: text }],
});

const brief = () => transcript.entries.map(({ id, state, text }) => [id, state, text]);

test("after a gap in the sound, places are those of the server, and nobody hears silence", () => {
  begin(1);
  words(1, "One two ");
  sound(1, 300);
  resync("sound_gap", { next: { a1: 700, a2: 200 } });
  words(1, "three four.");
  sound(1, 500);
  assert.equal(play(1, 300), 300);
  assert.equal(play(1, 500), 900);
  finish(1);
  assert.equal(play(1, 800, "finished"), 1200);
  // Of the next one, the beginning is missing.
  begin(2);
  sound(2, 400);
  assert.equal(play(2, 400), 600);
});

test("what is missing at an answer's end was not heard", async () => {
  begin(1);
  words(1, "One two three.");
  sound(1, 300);
  resync("journal_gap", { next: { a1: 900 }, items: [message("a1", "assistant", "One two three. Four.")] });
  assert.deepEqual(completed, ["a1"]);
  assert.deepEqual(brief(), [["a1", "speaking", "One two three. Four."]]);
  assert.equal(play(1, 300, "finished"), 300);
  assert.deepEqual(brief(), [["a1", "heard", "One two three. Four."]]);
});

test("after too long a gap the conversation is taken as it stands", () => {
  receive("input_audio_buffer.speech_started", { item_id: "u1", audio_start_ms: 0 });
  receive("input_audio_buffer.committed", { item_id: "u1", previous_item_id: null });
  begin(1);
  words(1, "Well, ");
  assert.deepEqual(conversation.floor, { you: true, duologue: false, thinking: false });
  resync("journal_gap", {
    items: [
      message("s1", "system", "Be kind."),
      message("u1", "user", "Hello?"),
      message("a1", "assistant", "Well, hello."),
      { id: "f1", type: "function_call", name: "look", call_id: "c1", arguments: "{}" },
      message("u2", "user", "And then?"),
      message("a2", "assistant", "Nothing."),
    ],
  });
  assert.deepEqual(brief(), [
    ["u1", "final", "Hello?"],
    ["a1", "heard", "Well, hello."],
    ["u2", "final", "And then?"],
    ["a2", "heard", "Nothing."],
  ]);
  assert.deepEqual(conversation.floor, { you: false, duologue: false, thinking: false });
  // It goes on as if nothing had been.
  begin(3);
  words(3, "Again.");
  sound(3, 200);
  assert.equal(transcript.entries.at(-1).text, "Again.");
});

test("an answer that is being said goes on, and its words are whole in the end", () => {
  begin(1);
  words(1, "One ");
  sound(1, 100);
  resync("journal_gap", { active: "r1", next: { a1: 400 }, items: [{ ...message("a1", "assistant", "", "in_progress"), content: [] }] });
  assert.deepEqual(completed, []);
  words(1, "three.");
  sound(1, 100);
  receive("response.output_audio_transcript.done", { ...where(1), transcript: "One two three." });
  finish(1);
  assert.equal(play(1, 200, "finished"), 500);
  assert.deepEqual(brief(), [["a1", "heard", "One two three."]]);
});

test("of an answer that was cut, the words stay that were heard", async () => {
  begin(1);
  words(1, "One two three four.");
  sound(1, 2000);
  play(1, 500, "started");
  await conversation.interrupt();
  const before = brief();
  assert.equal(before[0][1], "cut");
  resync("journal_gap", { items: [message("a1", "assistant", "One")] });
  assert.deepEqual(brief(), before);
});
