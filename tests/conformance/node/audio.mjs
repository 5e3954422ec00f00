// Speech, and what was said in it, with OpenAI's own SDK. Prints what happened as one JSON object.
import OpenAI, { toFile } from "openai";

const [baseURL, apiKey, model, voice, input] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
const base64 = (bytes) => Buffer.from(bytes).toString("base64");
const asked = { model, voice, input };

const whole = await client.audio.speech.create({ ...asked, response_format: "wav" });
const seen = { wav: base64(await whole.arrayBuffer()), kind: whole.headers.get("content-type") };

const streamed = await client.audio.speech.create({ ...asked, response_format: "pcm" });
const pieces = [];
for await (const piece of streamed.body) pieces.push(piece);
seen.pieces = pieces.length;
seen.pcm = base64(Buffer.concat(pieces));

const told = { ...asked, response_format: "pcm", stream_format: "sse" };
seen.events = await (await client.audio.speech.create(told)).text();
const flac = await client.audio.speech.create({ ...asked, response_format: "flac" });
seen.flac = base64(await flac.arrayBuffer());

try {
  await client.audio.speech.create({ ...asked, voice: "nobody", response_format: "pcm" });
} catch (refused) {
  seen.refused = [refused.status, refused.param];
}

const { data } = await client.models.list();
if (data.some((each) => each.id === model && each.capabilities.transcription)) {
  const file = await toFile(Buffer.from(seen.wav, "base64"), "said.wav", { type: "audio/wav" });
  seen.text = (await client.audio.transcriptions.create({ model, file })).text;
}
console.log(JSON.stringify(seen));
