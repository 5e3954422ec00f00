// A model that sees, hears, speaks and calls, with OpenAI's own SDK. Prints what happened as JSON.
import OpenAI from "openai";

const [baseURL, apiKey, model, calling, url, data, words] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
const seen = { text: "", pieces: 0 };

const content = [
  { type: "input_audio", input_audio: { data, format: "wav" } },
  { type: "image_url", image_url: { url } },
  { type: "text", text: "What?" },
];
const stream = await client.chat.completions.create({
  model,
  messages: [{ role: "user", content }],
  modalities: ["text", "audio"],
  audio: { voice: "ethan", format: "pcm16" },
  max_completion_tokens: Number(words),
  stream: true,
});
const sound = [];
for await (const chunk of stream) {
  const audio = chunk.choices[0]?.delta.audio ?? {};
  seen.text += audio.transcript ?? "";
  if (audio.data) sound.push(Buffer.from(audio.data, "base64"));
}
seen.pieces = sound.length;
seen.pcm = Buffer.concat(sound).toString("base64");

const tools = [{ type: "function", function: { name: "look", parameters: { type: "object" } } }];
const messages = [{ role: "user", content: "Hello there." }];
const first = await client.chat.completions.create({ model: calling, messages, tools });
const { message } = first.choices[0];
const [call] = message.tool_calls;
seen.called = [call.function.name, call.function.arguments];
messages.push(message, { role: "tool", tool_call_id: call.id, content: "a cat" });
const after = await client.chat.completions.create({ model: calling, messages });
seen.after = after.choices[0].message.content;
console.log(JSON.stringify(seen));
