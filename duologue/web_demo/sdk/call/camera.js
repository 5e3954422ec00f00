/** Frames of a camera beside a call, as the duplex dialect takes them. Knows no camera and no line. */

/** @typedef {import("../wire/line.js").RealtimeEvent} RealtimeEvent */

const PIECE_BYTES = 0x8000;

/**
 * @param {Blob} picture a JPEG, PNG or WebP file
 * @param {string | null} [frameId]
 * @returns {Promise<RealtimeEvent>}
 */
export async function videoFrame(picture, frameId = null) {
  const bytes = new Uint8Array(await picture.arrayBuffer());
  let binary = "";
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
    binary += String.fromCharCode(...bytes.subarray(at, at + PIECE_BYTES));
  }
  const event = { type: "video.frame", data: btoa(binary) };
  return frameId === null ? event : { ...event, frame_id: frameId };
}
