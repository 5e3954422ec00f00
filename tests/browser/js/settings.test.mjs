import assert from "node:assert/strict";
import { test } from "node:test";
import { DEFAULTS, callOptions, load, save } from "../../../duologue/web_demo/settings.js";

function storage(content = {}) {
  return { getItem: (key) => content[key] ?? null, setItem: (key, value) => (content[key] = value) };
}

test("what was saved is loaded", () => {
  const kept = storage();
  save(kept, { ...DEFAULTS, volume: 0.3, turnTaking: "manual" });
  assert.deepEqual(load(kept), { ...DEFAULTS, volume: 0.3, turnTaking: "manual" });
});

test("what an older page saved does not break this one", () => {
  const old = storage({ "duologue.settings": '{"volume":"loud","gone":1,"eagerness":"high"}' });
  assert.deepEqual(load(old), { ...DEFAULTS, eagerness: "high" });
  assert.deepEqual(load(storage({ "duologue.settings": "{nonsense" })), DEFAULTS);
});

test("a browser that blocks storage still holds calls", () => {
  const blocked = {
    getItem: () => { throw new Error("SecurityError"); },
    setItem: () => { throw new Error("SecurityError"); },
  };
  assert.deepEqual(load(blocked), DEFAULTS);
  assert.doesNotThrow(() => save(blocked, DEFAULTS));
});

test("echo cancellation is on unless somebody switches it off", () => {
  assert.equal(DEFAULTS.echoCancellation, true);
});

test("each way of taking turns is asked for in the wire's words", () => {
  const detection = (changes) => callOptions({ ...DEFAULTS, ...changes }).session.audio.input.turn_detection;
  const answer = { create_response: true, interrupt_response: true };
  assert.deepEqual(detection({ eagerness: "low" }), { type: "semantic_vad", eagerness: "low", ...answer });
  assert.deepEqual(detection({ turnTaking: "server_vad", silence_ms: 700 }), {
    type: "server_vad",
    silence_duration_ms: 700,
    ...answer,
  });
  assert.equal(detection({ turnTaking: "manual" }), null);
});

test("the server keeps its own instructions where none are given", () => {
  assert.equal("instructions" in callOptions(DEFAULTS).session, false);
  assert.equal(callOptions({ ...DEFAULTS, instructions: "Be brief." }).session.instructions, "Be brief.");
});

test("a call outlives its line wherever its transport allows it", () => {
  assert.equal(callOptions(DEFAULTS).dialect, "duplex");
  assert.equal(callOptions({ ...DEFAULTS, transport: "webrtc" }).dialect, "realtime");
});
