import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import * as sdk from "../../../duologue/web_demo/sdk/duologue.js";
import { Emitter } from "../../../duologue/web_demo/sdk/emitter.js";
import { DEFAULT_OPTIONS, changed, secretOf, sessionOf } from "../../../duologue/web_demo/sdk/options.js";

const options = (changes) => changed(DEFAULT_OPTIONS, changes);

test("where no gateway is named it is the one that the module came from", () => {
  assert.match(String(DEFAULT_OPTIONS.url), /web_demo\/v1$/);
});

test("options that do not exist are refused by name", () => {
  assert.throws(() => options({ transports: "webrtc" }), /no option transports; there are url/);
});

test("a change of the microphone leaves its other options", () => {
  const { microphone } = options({ microphone: { echoCancellation: false } });
  assert.equal(microphone.echoCancellation, false);
  assert.equal(microphone.noiseSuppression, true);
});

test("what does not go together is refused", () => {
  assert.throws(() => options({ dialect: "duplex", transport: "webrtc" }), /websocket/);
  assert.throws(() => options({ dialect: "duplex", pushToTalk: true }), /pushToTalk/);
});

test("an API key is refused before it leaves the page", async () => {
  await assert.rejects(secretOf("sk-secret"), /API key does not belong into a page/);
  await assert.rejects(secretOf(async () => "sk-secret"), /API key/);
  await assert.rejects(secretOf(() => ({ value: "ek_1" })), /no text but object/);
  assert.equal(await secretOf(async () => "ek_1"), "ek_1");
  assert.equal(await secretOf(""), "");
});

test("the session is what was asked for, with the audio that this module speaks", () => {
  const session = sessionOf(
    options({
      session: {
        instructions: "Be brief.",
        audio: { input: { turn_detection: { type: "server_vad" } }, output: { voice: "alloy" } },
      },
    }),
    [{ name: "a" }],
  );
  assert.equal(session.instructions, "Be brief.");
  assert.deepEqual(session.tools, [{ name: "a" }]);
  assert.deepEqual(session.audio.output, { voice: "alloy", format: { type: "audio/pcm", rate: 24000 } });
  assert.equal(session.audio.input.turn_detection.type, "server_vad");
});

test("push to talk leaves turns to the person", () => {
  const input = { turn_detection: { type: "server_vad" } };
  const { audio } = sessionOf(options({ pushToTalk: true, session: { audio: { input } } }), []);
  assert.equal(audio.input.turn_detection, null);
  assert.equal("turn_detection" in sessionOf(DEFAULT_OPTIONS, []).audio.input, false);
});

test("a listener hears its own events until it is taken away", () => {
  const emitter = new Emitter();
  const heard = [];
  const off = emitter.on("a", (detail) => heard.push(detail));
  emitter.emit("a", 1);
  emitter.emit("b", 2);
  off();
  emitter.emit("a", 3);
  assert.deepEqual(heard, [1]);
});

test("the types declare what the module has, and all of its options", () => {
  const url = new URL("../../../duologue/web_demo/sdk/duologue.d.ts", import.meta.url);
  const types = readFileSync(url, "utf8");
  const body = (name) => types.match(new RegExp(`export (?:class|interface) ${name}.*?\\{\\n(.*?)\\n\\}`, "s"))[1];
  const members = (name) => [...body(name).matchAll(/^  (?:readonly )?(\w+)[?(<:]/gm)].map(([, member]) => member);
  const exported = [...types.matchAll(/export (?:class|function) (\w+)/g)].map(([, name]) => name);
  assert.deepEqual(exported.sort(), Object.keys(sdk).sort());
  const call = new sdk.DuologueCall();
  const declared = members("DuologueCall").filter((name) => name !== "constructor");
  assert.ok(declared.length > 15);
  for (const name of declared) assert.ok(name in call, name);
  const own = [...Object.keys(call), ...Object.getOwnPropertyNames(sdk.DuologueCall.prototype)];
  assert.deepEqual(own.filter((name) => !declared.includes(name)), ["constructor"]);
  assert.deepEqual(members("CallOptions").sort(), Object.keys(DEFAULT_OPTIONS).sort());
});
