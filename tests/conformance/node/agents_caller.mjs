// A call with OpenAI's Agents SDK for JavaScript over a WebSocket.
import { RealtimeAgent, RealtimeSession, tool } from "@openai/agents-realtime";
import { OpenAIRealtimeWebSocket } from "@openai/agents-realtime";
import { z } from "zod";
import {
  API_KEY,
  Heard,
  ONE_QUESTION,
  QUESTION,
  RATE_HZ,
  WS_URL,
  complaints,
  report,
  say,
  speech,
} from "./calling.mjs";

const said = complaints();
const heard = new Heard();
const weather = tool({
  name: "weather",
  description: "Tell the weather.",
  parameters: z.object({ what: z.string() }),
  execute: ({ what }) => {
    heard.note({ tool: what });
    return `sun over ${what}`;
  },
});
const agent = new RealtimeAgent({ name: "a", instructions: "Be kind.", tools: [weather] });
const session = new RealtimeSession(agent, {
  transport: new OpenAIRealtimeWebSocket({ url: WS_URL }),
  tracingDisabled: true,
});
session.on("audio", (event) => heard.count("audio_bytes", event.data.byteLength));
session.on("audio_stopped", () => heard.count("answers"));
session.on("audio_interrupted", () => heard.count("interruptions"));
session.on("error", (event) => heard.note({ error: JSON.stringify(event).slice(0, 500) }));
session.on("history_updated", (history) => {
  for (const item of history) {
    for (const part of item.content ?? []) {
      const text = part.transcript ?? part.text;
      if (text) heard.note({ [`${item.role}: ${text}`]: true });
    }
  }
});

const speak = (name) => say(speech(name), (chunk) => session.sendAudio(chunk));
await session.connect({ apiKey: API_KEY });
if (ONE_QUESTION) {
  await speak(QUESTION);
  await heard.until("answers");
  session.close();
  report(heard, said);
}
await speak("hello again");
await heard.until("user: hello again");
await heard.until("assistant: Well, you said hello again.");
await heard.until("answers");

session.sendMessage("tell me something long");
await heard.until("audio_bytes", heard.notes.audio_bytes + RATE_HZ);
await speak("hello again");
await heard.until("interruptions");
await heard.until("answers", 3);

session.sendMessage("what of the weather");
await heard.until("tool");
await heard.until("assistant: Well, you said sun over x.");
session.close();
report(heard, said);
