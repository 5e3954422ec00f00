// Images and a video with OpenAI's own SDK. Prints what happened as one JSON object.
import OpenAI, { toFile } from "openai";

const [baseURL, apiKey] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
const seen = { partial: [] };

const image = await client.images.generate({ model: "gpt-image-1", prompt: "a cat", n: 2 });
seen.images = image.data.length;
seen.size = image.size;

const stream = await client.images.generate({
  model: "gpt-image-1",
  prompt: "a cat",
  stream: true,
  partial_images: 2,
});
for await (const event of stream) {
  if (event.type === "image_generation.partial_image") seen.partial.push(event.partial_image_index);
  else seen.completed = event.type;
}

const data = Buffer.from(image.data[0].b64_json, "base64");
const edited = await client.images.edit({
  model: "gpt-image-1",
  image: await toFile(data, "a.png", { type: "image/png" }),
  prompt: "a dog",
});
seen.edited = edited.data.length;

let video = await client.videos.create({ model: "sora-2", prompt: "waves", seconds: "4" });
while (!["completed", "failed"].includes(video.status)) {
  await new Promise((resolve) => setTimeout(resolve, 20));
  video = await client.videos.retrieve(video.id);
}
seen.status = video.status;
const content = await client.videos.downloadContent(video.id);
seen.bytes = (await content.arrayBuffer()).byteLength;
seen.deleted = (await client.videos.delete(video.id)).deleted;
console.log(JSON.stringify(seen));
