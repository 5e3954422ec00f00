/**
 * What the person can choose, where it is kept, and what of it the server is told.
 * Knows no DOM. The API key is not among these: it is never stored.
 */

/**
 * @typedef {object} Settings
 * @property {string} microphoneId empty for the system's own choice
 * @property {string} speakerId empty for the system's own choice
 * @property {boolean} echoCancellation
 * @property {boolean} noiseSuppression
 * @property {boolean} autoGainControl
 * @property {number} volume 0 to 1
 * @property {string} instructions empty for the server's own
 * @property {"semantic_vad" | "server_vad" | "manual"} turnTaking
 * @property {"low" | "medium" | "high" | "auto"} eagerness
 * @property {number} silence_ms
 * @property {"websocket" | "webrtc"} transport
 * @property {"realtime" | "duplex"} dialect of the WebSocket; not among what the person is offered
 * @property {string} model empty for the server's own choice
 */

/** @type {Settings} */
export const DEFAULTS = {
  microphoneId: "",
  speakerId: "",
  echoCancellation: true,
  noiseSuppression: true,
  autoGainControl: true,
  volume: 1,
  instructions: "",
  turnTaking: "semantic_vad",
  eagerness: "auto",
  silence_ms: 500,
  transport: "websocket",
  dialect: "duplex",
  model: "",
};

const STORAGE_KEY = "duologue.settings";

/**
 * @param {Pick<Storage, "getItem">} storage
 * @returns {Settings}
 */
export function load(storage) {
  try {
    const stored = JSON.parse(storage.getItem(STORAGE_KEY) ?? "{}");
    const known = Object.entries(stored).filter(
      ([name, value]) => typeof value === typeof DEFAULTS[/** @type {keyof Settings} */ (name)],
    );
    return { ...DEFAULTS, ...Object.fromEntries(known) };
  } catch {
    return { ...DEFAULTS }; // storage is blocked, or holds what an older page wrote
  }
}

/**
 * @param {Pick<Storage, "setItem">} storage
 * @param {Settings} settings
 */
export function save(storage, settings) {
  try {
    storage.setItem(STORAGE_KEY, JSON.stringify(settings));
  } catch {
    return; // storage is blocked: the choice holds until the page is left
  }
}

/**
 * Instructions are left out where the person gave none, so that the server's own stay in force.
 * @param {Settings} settings
 * @returns {Partial<import("./sdk/options.js").CallOptions>} what they mean for a call
 */
export function callOptions(settings) {
  const { microphoneId, echoCancellation, noiseSuppression, autoGainControl } = settings;
  const { speakerId, volume } = settings;
  return {
    ...lineOptions(settings),
    speakerId,
    volume,
    microphone: { deviceId: microphoneId, echoCancellation, noiseSuppression, autoGainControl },
    ...conversationOptions(settings),
  };
}

/**
 * A call that outlives its line needs the dialect that acknowledges, which WebRTC does not speak.
 * @param {Settings} settings
 * @returns {Pick<import("./sdk/options.js").CallOptions, "transport" | "dialect" | "model">}
 */
export function lineOptions({ transport, dialect, model }) {
  return { transport, dialect: transport === "webrtc" ? "realtime" : dialect, model };
}

/**
 * @param {Settings} settings
 * @returns {Pick<import("./sdk/options.js").CallOptions, "pushToTalk" | "session">}
 */
export function conversationOptions(settings) {
  return {
    pushToTalk: settings.turnTaking === "manual",
    session: {
      ...(settings.instructions ? { instructions: settings.instructions } : {}),
      audio: { input: { turn_detection: turnDetection(settings) } },
    },
  };
}

/**
 * @param {Settings} settings
 * @returns {{ [field: string]: any } | null} null where the person ends each turn by hand
 */
function turnDetection({ turnTaking, eagerness, silence_ms }) {
  const answer = { create_response: true, interrupt_response: true };
  if (turnTaking === "semantic_vad") return { type: turnTaking, eagerness, ...answer };
  if (turnTaking === "server_vad") {
    return { type: turnTaking, silence_duration_ms: silence_ms, ...answer };
  }
  return null;
}
