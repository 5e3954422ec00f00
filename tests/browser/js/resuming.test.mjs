import assert from "node:assert/strict";
import { test } from "node:test";
import { Backoff, GIVE_UP_MS } from "../../../duologue/web_demo/sdk/wire/backoff.js";
import { DuplexLine } from "../../../duologue/web_demo/sdk/wire/duplex-line.js";
import { LOOK_EVERY_MS, LineWatch, SILENCE_MS } from "../../../duologue/web_demo/sdk/wire/line-watch.js";
import { ReofferingLine } from "../../../duologue/web_demo/sdk/wire/reoffering-line.js";
import { KEPT_SAMPLES, SentLog } from "../../../duologue/web_demo/sdk/wire/sent-log.js";

const GONE = { code: 1006, reason: "", wasOpen: true, wasStalled: false };
const URL_ = new URL("http://h/v1/realtime?duplex=1&autostart=0");

function audio(samples) {
  return { type: "input_audio_buffer.append", audio: Buffer.alloc(2 * samples).toString("base64") };
}

// Backoff

test("waits double up to a bound, and end", () => {
  const eager = new Backoff(0, () => 0);
  const lazy = new Backoff(0, () => 1);
  const waits = (backoff) => Array.from({ length: 8 }, () => Math.round(backoff.next(100)));
  assert.deepEqual(waits(eager), [0, 200, 400, 800, 1600, 2500, 2500, 2500]);
  assert.deepEqual(waits(lazy), [200, 400, 800, 1600, 3200, 5000, 5000, 5000]);
  assert.equal(lazy.next(GIVE_UP_MS), null);
});

// Watch

test("a silent line is asked twice and then dead; one that answers lives", () => {
  const watch = new LineWatch(0);
  const seen = [];
  for (let at = 0; seen.at(-1) !== "dead"; at += LOOK_EVERY_MS) {
    const verdict = watch.look(at);
    if (verdict !== "fine") seen.push(verdict);
  }
  assert.deepEqual(seen, ["ask", "ask", "dead"]);
  const good = new LineWatch(0);
  for (let at = 0; at < 60_000; at += LOOK_EVERY_MS) {
    const verdict = good.look(at);
    assert.notEqual(verdict, "dead");
    if (verdict === "ask") good.heard(at + 50);
  }
});

test("a page that was asleep blames nobody", () => {
  const watch = new LineWatch(0);
  assert.notEqual(watch.look(10 * SILENCE_MS), "dead");
});

// Log

test("what the server has is forgotten, and the rest has its place", () => {
  const log = new SentLog();
  const sent = [audio(10), { type: "a" }, audio(10), { type: "b" }].map((event) => log.note(event));
  assert.deepEqual(sent.map(({ event_id, start_sample }) => [event_id, start_sample]), [
    ["client_1", 0], ["client_2", undefined], ["client_3", 10], ["client_4", undefined],
  ]);
  log.confirmAudio(10);
  assert.deepEqual(log.rest(10), sent.slice(1));
  log.confirmEvent("client_3");
  assert.deepEqual(log.rest(20), sent.slice(3));
  log.confirmEvent("client_1");
  assert.equal(log.length, 1);
  log.confirmEvent("client_4");
  assert.equal(log.length, 0);
});

test("what is said anew is not kept", () => {
  const log = new SentLog();
  log.note({ type: "session.event_ack", server_event_seq: 1 });
  log.note({ type: "session.heartbeat" });
  assert.equal(log.length, 0);
});

test("the oldest audio goes, and a hole is no longer than a server waits for", () => {
  const log = new SentLog();
  const second = audio(24_000);
  for (let n = 0; n < 35; n += 1) log.note(second);
  assert.equal(log.takeDropped_ms(), 35_000 - KEPT_SAMPLES / 24);
  assert.equal(log.takeDropped_ms(), 0);
  const rest = log.rest(0);
  assert.equal(rest.length, 20);
  assert.equal(rest[0].start_sample, 240_000);
  // From now on both count alike.
  assert.equal(log.shifted(log.note(second)).start_sample, rest.at(-1).start_sample + 24_000);
  log.confirmAudio(rest[1].start_sample);
  assert.equal(log.rest(rest[1].start_sample)[0].start_sample, rest[1].start_sample);
});

test("events are bounded", () => {
  const log = new SentLog();
  for (let n = 0; n < 600; n += 1) log.note({ type: "x" });
  assert.equal(log.length, 512);
});

// Line over WebRTC

class FakePeerLine {
  isClosed = false;
  sent = [];
  connect(url, key) {
    Object.assign(this, { url, key });
  }
  setTrack(track) {
    this.track = track;
  }
  setOpen(isOpen) {
    this.isOpen = isOpen;
  }
  send(event) {
    this.sent.push(event);
  }
  close() {
    this.isClosed = true;
  }
}

function offers(t) {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const lines = [];
  let now = 0;
  const make = () => (lines.push(new FakePeerLine()), lines.at(-1));
  const line = new ReofferingLine(make, { now: () => now, random: () => 0.5 });
  const seen = { opened: 0, closed: [], reconnecting: [], reconnected: [] };
  line.onOpen = () => (seen.opened += 1);
  line.onClosed = (closing) => seen.closed.push(closing);
  line.onReconnecting = ({ attempt }) => seen.reconnecting.push(attempt);
  line.onReconnected = ({ attempts }) => seen.reconnected.push(attempts);
  line.nextKey = async () => "ek_2";
  line.setTrack("microphone");
  line.connect(new URL("http://h/v1/realtime/calls?model=m"), "ek_1");
  const pass = async (ms) => {
    now += ms;
    t.mock.timers.tick(ms);
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { line, lines, seen, pass };
}

test("over WebRTC another offer names the session", async (t) => {
  const { line, lines, seen, pass } = offers(t);
  assert.equal(lines[0].url.search, "?model=m&resumable=1");
  lines[0].onOpen();
  lines[0].onEvent(created());
  line.setOpen(true);
  lines[0].onClosed(GONE);
  await pass(200);
  assert.equal(lines[1].url.search, "?model=m&session_id=s&resume_token=t1");
  assert.deepEqual([lines[1].key, lines[1].track, lines[1].isOpen], ["ek_2", "microphone", true]);
  assert.ok(lines[1].isOneOfSeveral, "its failure must not end the session");
  lines[1].onClosed({ ...GONE, wasOpen: false });
  await pass(500);
  lines[2].onOpen();
  lines[2].onEvent(created({ resume_token: "t2" }));
  assert.deepEqual(seen, { opened: 1, closed: [], reconnecting: [1, 2], reconnected: [2] });
  lines[2].onClosed(GONE);
  await pass(200);
  assert.equal(lines[3].url.searchParams.get("resume_token"), "t2");
  lines[3].onClosed({ ...GONE, wasOpen: false, refusedWith: "session_resume_conflict" });
  assert.equal(seen.closed[0].problem.kind, "session-gone");
  await pass(60_000);
  assert.equal(lines.length, 4);
});

test("over WebRTC, what never got through is not tried again by itself", async (t) => {
  const { line, lines, seen, pass } = offers(t);
  const blocked = { ...GONE, wasOpen: false, isBlocked: true };
  lines[0].onClosed(blocked);
  await pass(60_000);
  assert.deepEqual([seen.closed, lines.length], [[blocked], 1]);
  line.close();
});

// Line

class FakeLine {
  sent = [];
  isClosed = false;
  onOpen = () => {};
  onEvent = () => {};
  onClosed = () => {};
  connect(url, key) {
    this.url = url;
    this.key = key;
  }
  send(event) {
    this.sent.push(event);
  }
  close() {
    this.isClosed = true;
  }
  types() {
    return this.sent.map(({ type }) => type);
  }
}

function scene(t) {
  t.mock.timers.enable({ apis: ["setTimeout", "setInterval"] });
  const lines = [];
  let now = 0;
  const make = () => (lines.push(new FakeLine()), lines.at(-1));
  const line = new DuplexLine(make, { now: () => now, random: () => 0.5 });
  const seen = { events: [], closed: [], reconnecting: [], reconnected: [] };
  line.onEvent = (event) => seen.events.push(event.type);
  line.onClosed = (closing) => seen.closed.push(closing);
  line.onReconnecting = (attempt) => seen.reconnecting.push(attempt.attempt);
  line.onReconnected = (back) => seen.reconnected.push(back);
  line.onOpen = () => line.send({ type: "session.update" });
  line.connect(URL_, "ek_1");
  lines[0].onOpen();
  lines[0].onEvent(created());
  const pass = async (ms) => {
    now += ms;
    t.mock.timers.tick(ms);
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { line, lines, seen, pass };
}

function created(more = {}) {
  return { type: "session.created", server_event_seq: 1, session: { id: "s" }, resume_token: "t1", ...more };
}

function resumed(more = {}) {
  return { type: "session.resumed", session_id: "s", resume_token: "t2", next_sample: 0, ...more };
}

test("each event is taken once, and acknowledged", (t) => {
  const { line, lines, seen } = scene(t);
  lines[0].onEvent({ type: "x", server_event_seq: 2 });
  lines[0].onEvent({ type: "x", server_event_seq: 2 });
  lines[0].onEvent({ type: "y" });
  assert.deepEqual(seen.events, ["session.created", "x", "y"]);
  const acks = lines[0].sent.filter(({ type }) => type === "session.event_ack");
  assert.deepEqual(acks.map((ack) => ack.server_event_seq), [1, 2]);
  line.close();
  assert.equal(lines[0].types().at(-1), "session.close");
  assert.ok(lines[0].isClosed);
});

test("a lost line is dialled again, and what the server lacks is sent in order", async (t) => {
  const { line, lines, seen, pass } = scene(t);
  line.nextKey = async () => "ek_2";
  line.send(audio(10));
  line.send({ type: "input_audio_buffer.commit" });
  line.send(audio(10));
  const [, , commit] = lines[0].sent.filter(({ type }) => type !== "session.event_ack");
  lines[0].onClosed(GONE);
  line.send(audio(10));
  await pass(200);
  const second = lines[1];
  assert.equal(second.key, "ek_2");
  assert.equal(second.url.searchParams.get("resume"), "1");
  second.onOpen();
  assert.deepEqual(second.sent[0], {
    type: "session.resume",
    session_id: "s",
    resume_token: "t1",
    last_received_server_event_seq: 1,
  });
  second.onEvent(resumed({ next_sample: 10, last_event_id: commit.event_id }));
  const again = second.sent.slice(1);
  assert.deepEqual(again.map(({ start_sample }) => start_sample), [10, 20]);
  assert.deepEqual(seen.reconnecting, [1]);
  assert.deepEqual(seen.reconnected, [{ gap_s: 0.2, attempts: 1, dropped_ms: 0 }]);
  assert.deepEqual(seen.closed, []);
  line.send({ type: "z" });
  assert.equal(second.types().at(-1), "z");
  // The next time it shows the next token.
  second.onClosed(GONE);
  await pass(200);
  lines[2].onOpen();
  assert.equal(lines[2].sent[0].resume_token, "t2");
});

test("nothing that comes for the second time is taken twice", async (t) => {
  const { lines, seen, pass } = scene(t);
  lines[0].onEvent({ type: "x", server_event_seq: 2 });
  lines[0].onClosed(GONE);
  await pass(200);
  lines[1].onOpen();
  lines[1].onEvent(resumed());
  lines[1].onEvent({ type: "x", server_event_seq: 2 });
  lines[1].onEvent({ type: "y", server_event_seq: 3 });
  assert.deepEqual(seen.events, ["session.created", "x", "session.resumed", "y"]);
});

test("a black hole is noticed", async (t) => {
  const { lines, seen, pass } = scene(t);
  for (let ms = 0; ms <= SILENCE_MS + LOOK_EVERY_MS; ms += LOOK_EVERY_MS) await pass(LOOK_EVERY_MS);
  assert.ok(lines[0].types().includes("session.heartbeat"));
  assert.ok(lines[0].isClosed);
  assert.deepEqual(seen.reconnecting.slice(0, 1), [1]);
});

test("attempts go on, until the server says that there is nothing to go on with", async (t) => {
  const { lines, seen, pass } = scene(t);
  lines[0].onClosed({ ...GONE, code: 1012 });
  await pass(200);
  lines[1].onClosed(GONE); // nobody there
  await pass(500);
  lines[2].onOpen();
  lines[2].onEvent({ type: "error", error: { code: "server_full" } });
  await pass(1000);
  lines[3].onOpen();
  await pass(6000); // it says nothing
  assert.ok(lines[3].isClosed);
  await pass(2000);
  lines[4].onOpen();
  lines[4].onEvent({ type: "error", error: { code: "session_resume_expired" } });
  assert.deepEqual(seen.reconnecting, [1, 2, 3, 4]);
  assert.equal(seen.closed.length, 1);
  assert.equal(seen.closed[0].problem.kind, "session-gone");
  await pass(60_000);
  assert.equal(lines.length, 5);
});

test("it gives up in the end", async (t) => {
  const { lines, seen, pass } = scene(t);
  lines[0].onClosed(GONE);
  for (let n = 0; n < 100 && seen.closed.length === 0; n += 1) {
    await pass(1000);
    for (const each of lines.slice(1)) if (!each.isClosed) each.onClosed(GONE);
  }
  assert.equal(seen.closed[0].problem.kind, "connection-lost");
});

test("a call that was ended on purpose is not dialled again", async (t) => {
  for (const [event, closing] of [
    [{ type: "session.closed", server_event_seq: 2 }, GONE],
    [{ type: "session.expired", server_event_seq: 2 }, GONE],
    [{ type: "x", server_event_seq: 2 }, { ...GONE, code: 4001 }],
    [{ type: "x", server_event_seq: 2 }, { ...GONE, code: 1000 }],
  ]) {
    const { lines, seen, pass } = scene(t);
    lines[0].onEvent(event);
    lines[0].onClosed(closing);
    await pass(10_000);
    assert.equal(lines.length, 1);
    assert.deepEqual(seen.closed, [closing]);
    t.mock.timers.reset();
  }
});

test("who hangs up while there is no line is left alone", async (t) => {
  const { line, lines, seen, pass } = scene(t);
  lines[0].onClosed(GONE);
  line.close();
  await pass(10_000);
  assert.equal(lines.length, 1);
  assert.deepEqual(seen.closed, []);
});

test("the network that is back is not waited for", async (t) => {
  const { line, lines, pass } = scene(t);
  line.hurry();
  lines[0].onClosed(GONE);
  line.hurry();
  await pass(0);
  assert.equal(lines.length, 2);
});

test("a session that has grown too old goes on in a new one", async (t) => {
  const { lines, seen, pass } = scene(t);
  lines[0].onEvent({ type: "session.expired", server_event_seq: 9, rollover: "new_session" });
  lines[0].onClosed({ ...GONE, code: 1000 });
  await pass(200);
  lines[1].onOpen();
  lines[1].onEvent(created({ session: { id: "s2" }, resume_token: "t9", continues: "s" }));
  lines[1].onEvent({ type: "x", server_event_seq: 2 });
  assert.deepEqual(seen.events, ["session.created", "session.expired", "session.created", "x"]);
  lines[1].onClosed(GONE);
  await pass(200);
  lines[2].onOpen();
  assert.equal(lines[2].sent[0].session_id, "s2");
});
