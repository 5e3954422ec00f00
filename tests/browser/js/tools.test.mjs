import assert from "node:assert/strict";
import { test } from "node:test";
import { Tools } from "../../../duologue/web_demo/sdk/call/tools.js";

/** Runs what the model calls, and returns what was sent once everything has settled. */
async function called(tools, calls, after = () => {}) {
  const sent = [];
  const box = new Tools(tools, (event) => sent.push(event));
  const results = new Promise((resolve) => {
    let left = calls.length;
    box.onResult = () => (left -= 1) === 0 && resolve();
  });
  box.receive({ type: "response.created", response: { id: "r" } });
  for (const [index, [name, text, status = "completed"]] of calls.entries()) {
    const item = { type: "function_call", status, name, call_id: `c${index}`, arguments: text };
    box.receive({ type: "response.output_item.done", response_id: "r", item });
  }
  box.receive({ type: "response.done", response: { id: "r" } });
  await results;
  await after(box);
  return sent;
}

const outputs = (sent) => sent.filter(({ item }) => item).map(({ item }) => [item.call_id, item.output]);
const tool = (run, more = {}) => ({ description: "d", run, ...more });

test("what a function returns is handed back, and an answer is asked for", async () => {
  const sent = await called({ add: tool(({ a, b }) => a + b) }, [["add", '{"a":1,"b":2}']]);
  assert.deepEqual(sent, [
    { type: "conversation.item.create", item: { type: "function_call_output", call_id: "c0", output: "3" } },
    { type: "response.create" },
  ]);
});

test("text goes as it is, promises are waited for, nothing is null", async () => {
  const tools = { text: tool(() => "sun"), later: tool(async () => ({ ok: 1 })), none: tool(() => {}) };
  const sent = await called(tools, [["text", "{}"], ["later", "{}"], ["none", ""]]);
  assert.deepEqual(new Map(outputs(sent)), new Map([["c0", "sun"], ["c1", '{"ok":1}'], ["c2", "null"]]));
  assert.equal(sent.filter(({ type }) => type === "response.create").length, 1);
  assert.equal(sent.at(-1).type, "response.create");
});

test("the model is told what went wrong", async () => {
  const fails = tool(() => { throw new Error("no such town"); });
  const sent = await called({ fails }, [["fails", "{}"], ["fails", "{broken"]]);
  const said = new Map(outputs(sent));
  assert.equal(said.get("c0"), '{"error":"no such town"}');
  assert.match(said.get("c1"), /error/);
});

test("a function that takes too long is told to stop, and the model is told", async () => {
  let wasStopped = false;
  const slow = tool((_, { signal }) => new Promise(() => {
    signal.addEventListener("abort", () => (wasStopped = true));
  }), { timeout_s: 0.01 });
  const sent = await called({ slow }, [["slow", "{}"]]);
  assert.deepEqual(outputs(sent), [["c0", '{"error":"slow took longer than 0.01 s"}']]);
  assert.equal(wasStopped, true);
});

test("no answer is asked for while another one is being given", async () => {
  const sent = [];
  const box = new Tools({ one: tool(() => 1) }, (event) => sent.push(event.type));
  const done = new Promise((resolve) => (box.onResult = resolve));
  const item = { type: "function_call", status: "completed", name: "one", call_id: "c", arguments: "{}" };
  box.receive({ type: "response.output_item.done", response_id: "r", item });
  box.receive({ type: "response.done", response: { id: "r" } });
  box.receive({ type: "response.created", response: { id: "other" } });
  await done;
  assert.deepEqual(sent, ["conversation.item.create"]);
  box.receive({ type: "response.done", response: { id: "other" } });
  assert.deepEqual(sent, ["conversation.item.create", "response.create"]);
});

test("a call that was cut off, or of a function that is not ours, is not run", () => {
  const ran = [];
  const box = new Tools({ one: tool(() => ran.push(1)) }, () => {});
  const item = { type: "function_call", call_id: "c", arguments: "{}" };
  box.receive({ type: "response.output_item.done", response_id: "r", item: { ...item, name: "one", status: "incomplete" } });
  box.receive({ type: "response.output_item.done", response_id: "r", item: { ...item, name: "toString", status: "completed" } });
  assert.deepEqual(ran, []);
});

test("what returns after the call is over is dropped", async () => {
  const sent = [];
  let finish;
  const box = new Tools({ one: tool(() => new Promise((resolve) => (finish = resolve))) }, (e) => sent.push(e));
  const item = { type: "function_call", status: "completed", name: "one", call_id: "c", arguments: "{}" };
  box.receive({ type: "response.output_item.done", response_id: "r", item });
  box.end();
  finish(1);
  await new Promise(setImmediate);
  assert.deepEqual(sent, []);
});

test("they are described to the model", () => {
  const parameters = { type: "object", properties: { where: { type: "string" } } };
  const box = new Tools({ a: tool(() => 1, { parameters }), b: tool(() => 1) }, () => {});
  assert.deepEqual(box.describe(), [
    { type: "function", name: "a", description: "d", parameters },
    { type: "function", name: "b", description: "d", parameters: { type: "object", properties: {} } },
  ]);
});
