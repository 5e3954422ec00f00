// Images and a video with OpenAI's own SDK. Prints what happened as one JSON object.
import OpenAI, { toFile } from "openai";

const [baseURL, apiKey, drawing, filming, frames, seed] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
const seen = { partial: [] };
const luck = seed ? { seed: Number(seed) } : {};
const asked = { model: drawing, prompt: "a cat", ...luck };

const image = await client.images.generate({ ...asked, n: 2 });
seen.images = image.data.length;
seen.size = image.size;

const webp = { size: "96x64", output_format: "webp", output_compression: 100 };
seen.wide = (await client.images.generate({ ...asked, ...webp })).data[0].b64_json;

const stream = await client.images.generate({ ...asked, stream: true, partial_images: 2 });
for await (const event of stream) {
  if (event.type === "image_generation.partial_image") seen.partial.push(event.partial_image_index);
  else {
    seen.completed = event.type;
    seen.image = event.b64_json;
  }
}

const data = Buffer.from(image.data[0].b64_json, "base64");
const edited = await client.images.edit({
  model: drawing,
  image: await toFile(data, "a.png", { type: "image/png" }),
  prompt: "a dog",
});
seen.edited = edited.data.length;

const length = frames ? { num_frames: Number(frames) } : { seconds: "4" };
let video = await client.videos.create({ model: filming, prompt: "waves", ...length, ...luck });
while (!["completed", "failed"].includes(video.status)) {
  await new Promise((resolve) => setTimeout(resolve, 20));
  video = await client.videos.retrieve(video.id);
}
seen.status = video.status;
const content = await client.videos.downloadContent(video.id);
seen.film = Buffer.from(await content.arrayBuffer()).toString("base64");
seen.deleted = (await client.videos.delete(video.id)).deleted;
console.log(JSON.stringify(seen));
