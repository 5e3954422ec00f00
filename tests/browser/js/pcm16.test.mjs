import assert from "node:assert/strict";
import { test } from "node:test";
import { fromBase64, fromFloat, rms, toBase64 } from "../../../duologue/web_demo/sdk/audio/pcm16.js";

test("samples survive the wire", () => {
  const pcm = Int16Array.from({ length: 20_000 }, (_, n) => ((n * 7919) % 65536) - 32768);
  assert.deepEqual(fromBase64(toBase64(pcm)), pcm);
});

test("the first byte on the wire is the low one", () => {
  assert.equal(toBase64(Int16Array.of(1)), btoa("\x01\x00"));
});

test("half a sample at the end is dropped", () => {
  assert.deepEqual(fromBase64(btoa("\x01\x00\x02")), Int16Array.of(1));
});

test("what is too loud is clipped and does not wrap round", () => {
  assert.deepEqual(fromFloat(Float32Array.of(1.5, -1.5, 0)), Int16Array.of(32767, -32768, 0));
});

test("loudness is measured over the stretch that was asked for", () => {
  const pcm = Int16Array.of(0, 0, 16384, -16384);
  assert.equal(rms(pcm, 2, 4), 0.5);
  assert.equal(rms(pcm, 0, 2), 0);
});
