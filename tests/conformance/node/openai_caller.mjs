// One call with OpenAI's own SDK over wss, through the socket of a server or that of a browser,
// which has no headers. Prints what happened as one JSON object.
import OpenAI from "openai";
import { OpenAIRealtimeWebSocket } from "openai/realtime/websocket";
import { OpenAIRealtimeWS } from "openai/realtime/ws";

const [kind, baseURL, apiKey, line] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey });
const Call = { server: OpenAIRealtimeWS, browser: OpenAIRealtimeWebSocket }[kind];
const call = new Call({ model: "duologue" }, client);
const seen = { url: String(call.url), types: [], errors: [], transcript: "", audioBytes: 0 };

call.on("error", (error) => {
  seen.errors.push(error.message);
  call.close();
});
call.on("event", (event) => seen.types.push(event.type));
call.on("session.created", () => {
  call.send({
    type: "session.update",
    session: { type: "realtime", instructions: "Be kind.", audio: { output: { voice: "marin" } } },
  });
});
call.on("session.updated", (event) => {
  seen.instructions = event.session.instructions;
  const content = [{ type: "input_text", text: line }];
  call.send({ type: "conversation.item.create", item: { type: "message", role: "user", content } });
  call.send({ type: "response.create" });
});
call.on("response.output_audio.delta", (event) => {
  seen.audioBytes += Buffer.from(event.delta, "base64").length;
});
call.on("response.output_audio_transcript.done", (event) => {
  seen.transcript = event.transcript;
});
call.on("response.done", (event) => {
  seen.status = event.response.status;
  call.close();
});
call.socket.addEventListener("close", ({ code }) => {
  console.log(JSON.stringify({ ...seen, code, protocol: call.socket.protocol }));
});
