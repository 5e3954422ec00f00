import assert from "node:assert/strict";
import { test } from "node:test";
import { PlaybackAcks, ServerPlays, Truncations } from "../../../duologue/web_demo/sdk/call/heard-reports.js";
import { TrackSpeaker } from "../../../duologue/web_demo/sdk/call/track-speaker.js";
import { callsUrl, realtimeUrl } from "../../../duologue/web_demo/sdk/wire/line.js";
import { secretFor } from "../../../duologue/web_demo/key.js";

const answer = (heardSamples, id = "item") => ({ id, contentIndex: 0, receivedSamples: 99, heardSamples });

test("each door of the server stands below its base", () => {
  const base = new URL("https://h/voice/v1");
  assert.equal(callsUrl(base, "").href, "https://h/voice/v1/realtime/calls");
  assert.equal(callsUrl(base, "m").href, "https://h/voice/v1/realtime/calls?model=m");
  assert.equal(realtimeUrl(base, { isDuplex: true }).search, "?duplex=1&autostart=0");
});

test("in the Realtime API what was heard is said where it is cut", () => {
  const sent = [];
  const heard = new Truncations((event) => sent.push(event));
  heard.played();
  heard.cut(answer(2400));
  heard.cut({ ...answer(0), receivedSamples: 0 });
  assert.deepEqual(sent, [
    { type: "conversation.item.truncate", item_id: "item", content_index: 0, audio_end_ms: 100 },
  ]);
});

test("in the duplex dialect playback is acknowledged every 200 ms, at its end, and at a cut", () => {
  const sent = [];
  const heard = new PlaybackAcks(({ type, ...event }) => sent.push([type, event]));
  for (let played = 0; played <= 24_000 * 0.5; played += 480) heard.played(answer(played), false);
  heard.played(answer(12_480), true);
  heard.played(answer(4800, "next"), false);
  heard.cut(answer(6000, "next"));
  assert.ok(sent.every(([type]) => type === "playback.ack"));
  assert.deepEqual(sent.map(([, event]) => [event.item_id, event.played_ms]), [
    ["item", 200], ["item", 400], ["item", 520], ["next", 200], ["next", 250],
  ]);
  assert.equal(sent.at(-1)[1].truncate, true);
});

test("over WebRTC the server is asked for silence, and for the words that were heard", () => {
  const sent = [];
  const heard = new ServerPlays((event) => sent.push(event));
  heard.cut(answer(1));
  heard.silence();
  heard.truncated("item");
  assert.deepEqual(sent, [
    { type: "output_audio_buffer.clear" },
    { type: "conversation.item.retrieve", item_id: "item" },
  ]);
});

test("the server's playing is told in the words of a loudspeaker", async () => {
  let now = 1000;
  const reports = [], silences = [];
  const speaker = new TrackSpeaker(() => now);
  speaker.onReport = ({ type, id, playedSamples }) => reports.push([type, id, playedSamples]);
  speaker.onSilence = (isSilent) => silences.push(isSilent);
  speaker.tick();
  const part = { type: "audio" };
  speaker.receive({ type: "response.content_part.added", response_id: "r", item_id: "i", part });
  speaker.receive({ type: "output_audio_buffer.started", response_id: "r" });
  now += 100;
  speaker.tick();
  now += 100;
  speaker.receive({ type: "output_audio_buffer.stopped", response_id: "r" });
  speaker.tick();
  assert.deepEqual(reports, [["started", "i", 0], ["position", "i", 2400], ["finished", "i", 4800]]);
  speaker.receive({ type: "output_audio_buffer.started", response_id: "r" });
  now += 50;
  assert.deepEqual(await speaker.flush(), [{ id: "i", playedSamples: 1200 }]);
  assert.deepEqual(await speaker.flush(), []);
  assert.deepEqual(silences, [false, false, true, true]);
});

test("an API key that somebody types is exchanged for a client secret", async () => {
  const base = new URL("http://h/v1");
  const asked = [];
  const ask = async (url, { headers }) => {
    asked.push([url, headers.Authorization]);
    return new Response('{"value":"ek_new"}');
  };
  assert.equal(await secretFor("", base, ask), "");
  assert.equal(await secretFor("ek_old", base, ask), "ek_old");
  assert.equal(await secretFor("sk-1", base, ask), "ek_new");
  assert.deepEqual(asked, [["http://h/v1/realtime/client_secrets", "Bearer sk-1"]]);
  const refuse = async () => new Response('{"error":{"message":"No such key."}}', { status: 401 });
  await assert.rejects(secretFor("sk-1", base, refuse), /No such key/);
  await assert.rejects(secretFor("sk-1", base, async () => { throw new TypeError(); }), /does not answer/);
});
