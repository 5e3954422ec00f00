/** What a page may choose of a call, and what it gets where it chooses nothing. */

/**
 * @typedef {object} CallOptions
 * @property {string | URL} url of the API, which ends in `/v1`
 * @property {"websocket" | "webrtc"} transport
 * @property {boolean} fallback a call whose WebRTC does not get through goes over WebSocket
 * @property {"realtime" | "duplex"} dialect of the WebSocket
 * @property {string | (() => string | Promise<string>)} key a client secret (`ek_...`), or who gets
 *   one; empty where the server asks for none
 * @property {string} model empty for the server's own choice
 * @property {{ [field: string]: any }} session as in `session.update`
 * @property {boolean} pushToTalk the person ends each turn by hand: `press` and `release`
 * @property {import("./audio/microphone.js").MicrophoneOptions} microphone
 * @property {string} speakerId empty for the system's own choice
 * @property {number} volume 0 to 1
 * @property {{ [name: string]: import("./call/tools.js").Tool }} tools
 * @property {RTCIceServer[]} iceServers
 */

const FORMAT = { type: "audio/pcm", rate: 24000 };
const KEY_PREFIX = "ek_";

/** @type {CallOptions} */
export const DEFAULT_OPTIONS = {
  // The gateway that this module came from.
  url: new URL("../v1", import.meta.url),
  transport: "websocket",
  fallback: true,
  dialect: "realtime",
  key: "",
  model: "",
  session: {},
  pushToTalk: false,
  microphone: { deviceId: "", echoCancellation: true, noiseSuppression: true, autoGainControl: true },
  speakerId: "",
  volume: 1,
  tools: {},
  iceServers: [],
};

/**
 * @param {CallOptions} options
 * @param {Partial<CallOptions>} changes
 * @returns {CallOptions}
 * @throws {TypeError} where the changes name what does not exist, or what does not go together
 */
export function changed(options, changes) {
  for (const name of Object.keys(changes)) {
    if (!(name in DEFAULT_OPTIONS)) {
      const names = Object.keys(DEFAULT_OPTIONS).join(", ");
      throw new TypeError(`There is no option ${name}; there are ${names}.`);
    }
  }
  const next = {
    ...options,
    ...changes,
    microphone: { ...options.microphone, ...changes.microphone },
  };
  if (next.dialect === "duplex" && next.transport === "webrtc") {
    throw new TypeError('The duplex dialect is spoken over WebSocket: choose transport "websocket".');
  }
  if (next.dialect === "duplex" && next.pushToTalk) {
    throw new TypeError("In the duplex dialect turns are never ended by hand: leave pushToTalk out.");
  }
  return next;
}

/**
 * @param {CallOptions} options
 * @param {object[]} tools as the wire describes them
 * @returns {{ [field: string]: any }} the body of `session.update`
 */
export function sessionOf({ session, pushToTalk }, tools) {
  const { audio = {}, ...rest } = session;
  return {
    type: "realtime",
    output_modalities: ["audio"],
    ...(tools.length > 0 ? { tools } : {}),
    ...rest,
    audio: {
      input: {
        transcription: { model: "whisper-1" },
        ...audio.input,
        ...(pushToTalk ? { turn_detection: null } : {}),
        format: FORMAT,
      },
      output: { ...audio.output, format: FORMAT },
    },
  };
}

/**
 * @param {CallOptions["key"]} key
 * @returns {Promise<string>}
 * @throws {TypeError} where it is no client secret
 */
export async function secretOf(key) {
  const secret = typeof key === "function" ? await key() : key;
  if (typeof secret !== "string") throw new TypeError(`The key is no text but ${typeof secret}.`);
  if (secret && !secret.startsWith(KEY_PREFIX)) {
    throw new TypeError(
      "The key is no client secret: an API key does not belong into a page, where anybody can read it.",
    );
  }
  return secret;
}
