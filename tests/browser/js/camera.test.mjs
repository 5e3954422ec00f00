import assert from "node:assert/strict";
import { test } from "node:test";

import { videoFrame } from "../../../duologue/web_demo/sdk/call/camera.js";
import { SentLog } from "../../../duologue/web_demo/sdk/wire/sent-log.js";

test("a picture of any size becomes an event", async () => {
  const bytes = Uint8Array.from({ length: 100_000 }, (_, at) => at % 251);
  const event = await videoFrame(new Blob([bytes]), "f1");
  assert.equal(event.type, "video.frame");
  assert.equal(event.frame_id, "f1");
  assert.deepEqual(new Uint8Array(Buffer.from(event.data, "base64")), bytes);
  assert.ok(!("frame_id" in (await videoFrame(new Blob([bytes])))));
});

test("a frame is not sent again on another line: the camera shows what is there now", async () => {
  const log = new SentLog();
  log.note(await videoFrame(new Blob(["jpeg"])));
  log.note({ type: "response.create" });
  assert.equal(log.length, 1);
});
