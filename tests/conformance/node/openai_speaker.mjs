// A call with OpenAI's own SDK over wss, through the socket of a server or that of a browser: it
// speaks, is answered, types, interrupts, has a tool called.
import OpenAI from "openai";
import { OpenAIRealtimeWebSocket } from "openai/realtime/websocket";
import { OpenAIRealtimeWS } from "openai/realtime/ws";
import {
  API_KEY,
  BASE_URL,
  Heard,
  ONE_QUESTION,
  QUESTION,
  RATE_HZ,
  complaints,
  report,
  say,
  speech,
} from "./calling.mjs";

const said = complaints();
const heard = new Heard();
const Call = { server: OpenAIRealtimeWS, browser: OpenAIRealtimeWebSocket }[process.argv[2]];
const call = new Call({ model: "duologue" }, new OpenAI({ baseURL: BASE_URL, apiKey: API_KEY }));
const weather = {
  type: "function",
  name: "weather",
  description: "Tell the weather.",
  parameters: { type: "object", properties: { what: { type: "string" } } },
};
let speaking = null;

call.on("error", (error) => heard.note({ error: error.message }));
call.on("session.created", () => {
  const input = { transcription: { model: "gpt-4o-mini-transcribe" } };
  call.send({
    type: "session.update",
    session: { type: "realtime", instructions: "Be kind.", tools: [weather], audio: { input } },
  });
});
call.on("session.updated", () => heard.note({ ready: true }));
call.on("conversation.item.input_audio_transcription.completed", (event) => {
  heard.note({ [`user: ${event.transcript}`]: true });
});
call.on("response.output_audio.delta", (event) => {
  speaking = event;
  heard.count("audio_bytes", Buffer.from(event.delta, "base64").length);
});
call.on("response.output_audio_transcript.done", (event) => {
  heard.note({ [`assistant: ${event.transcript}`]: true });
});
call.on("conversation.item.truncated", (event) => heard.note({ cut_ms: event.audio_end_ms }));
call.on("response.done", ({ response }) => {
  heard.count(response.status);
  const asked = response.output.find((item) => item.type === "function_call");
  if (!asked) return;
  const { what } = JSON.parse(asked.arguments);
  heard.note({ tool: what });
  const item = {
    type: "function_call_output",
    call_id: asked.call_id,
    output: `sun over ${what}`,
  };
  call.send({ type: "conversation.item.create", item });
  call.send({ type: "response.create" });
});

const speak = (name) =>
  say(speech(name), (chunk) => {
    const audio = Buffer.from(chunk).toString("base64");
    call.send({ type: "input_audio_buffer.append", audio });
  });
const write = (text) => {
  const content = [{ type: "input_text", text }];
  call.send({ type: "conversation.item.create", item: { type: "message", role: "user", content } });
  call.send({ type: "response.create" });
};

await heard.until("ready");
if (ONE_QUESTION) {
  await speak(QUESTION);
  await heard.until("completed");
  call.close();
  report(heard, said);
}
await speak("hello again");
await heard.until("user: hello again");
await heard.until("assistant: Well, you said hello again.");

write("tell me something long");
await heard.until("audio_bytes", heard.notes.audio_bytes + RATE_HZ);
const cut = speaking;
await speak("hello again");
await heard.until("cancelled");
call.send({
  type: "conversation.item.truncate",
  item_id: cut.item_id,
  content_index: cut.content_index,
  audio_end_ms: 120,
});
await heard.until("completed", 2);

write("what of the weather");
await heard.until("tool");
await heard.until("assistant: Well, you said sun over x.");
call.socket.addEventListener("close", ({ code }) => {
  heard.note({ code });
  report(heard, said);
});
call.close();
