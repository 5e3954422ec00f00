/**
 * What can go wrong, told to the person who must do something about it.
 * Pure: causes in, words out. Knows no DOM.
 */

import { NOT_ALLOWED } from "./diagnosis.js";

/**
 * @typedef {"call" | "type" | "settings" | "resume"} Remedy
 * call: dial (again); type: go on without a microphone; settings: open them; resume: start sound
 */

/**
 * @typedef {object} Problem
 * @property {string} kind
 * @property {string} title
 * @property {string} text
 * @property {string[]} steps what to do, in order
 * @property {Remedy[]} remedies buttons to offer, the first one prominent
 */

/** @typedef {import("./line.js").Closing} Closing */
/** @typedef {import("./diagnosis.js").Refusal} Refusal */

/** Without one of these nothing works, and a newer browser is the only help. */
const NEEDED = ["AudioContext", "AudioWorkletNode", "WebSocket"];

/**
 * @param {{ [name: string]: any }} scope the window
 * @returns {Problem | null} why this page cannot hold a call here at all
 */
export function environmentProblem(scope) {
  if (!scope.isSecureContext) {
    const port = scope.location.port ? `:${scope.location.port}` : "";
    return {
      kind: "insecure",
      title: "This address is not secure",
      text: "Browsers give a microphone only to pages from https or from this same computer.",
      steps: [
        `On the computer that runs Duologue, open http://localhost${port} instead.`,
        "From another device, put Duologue behind https, or forward the port: " +
          `ssh -L ${scope.location.port || 8080}:localhost:${scope.location.port || 8080} ${scope.location.hostname}`,
      ],
      remedies: [],
    };
  }
  const missing = NEEDED.filter((name) => !(name in scope));
  if (missing.length === 0) return null;
  return {
    kind: "unsupported",
    title: "This browser cannot hold a call",
    text: `It lacks ${missing.join(", ")}.`,
    steps: ["Use Chrome or Edge 111, Firefox 121, Safari 16.4, or anything newer."],
    remedies: [],
  };
}

/**
 * @param {unknown} error what getUserMedia threw
 * @returns {Problem}
 */
export function microphoneProblem(error) {
  const name = error instanceof Error ? error.name : "";
  if (name === "NotAllowedError" || name === "SecurityError") {
    return {
      kind: "microphone-denied",
      title: "The microphone is blocked",
      text: "This page may not listen, so Duologue cannot hear you.",
      steps: [
        "Click the icon beside the address, and allow the microphone for this page.",
        "If it is allowed there, allow it for the browser in the system's privacy settings.",
      ],
      remedies: ["call", "type"],
    };
  }
  if (name === "NotFoundError" || name === "OverconstrainedError") {
    return {
      kind: "microphone-missing",
      title: "No microphone found",
      text: "The browser sees no device that could hear you.",
      steps: ["Plug in a microphone or a headset, or connect one over Bluetooth."],
      remedies: ["call", "type"],
    };
  }
  if (name === "NotReadableError" || name === "AbortError") {
    return {
      kind: "microphone-busy",
      title: "The microphone does not start",
      text: "The system has one, but does not hand it over. Another program may be using it.",
      steps: ["Close other programs that record or call.", "Or choose another microphone."],
      remedies: ["call", "settings", "type"],
    };
  }
  return {
    kind: "microphone-failed",
    title: "The microphone does not start",
    text: error instanceof Error ? error.message : String(error),
    steps: ["Choose another microphone, or reload the page."],
    remedies: ["call", "settings", "type"],
  };
}

/** @returns {Problem} */
export function microphoneLost() {
  return {
    kind: "microphone-lost",
    title: "The microphone went away",
    text: "It was unplugged, or the system took it. The call goes on: you still hear Duologue.",
    steps: ["Plug it in again, or choose another one.", "Or go on by typing."],
    remedies: ["settings"],
  };
}

/**
 * @param {Refusal} refusal what the server answered when asked why
 * @returns {Problem}
 */
export function refusalProblem({ status, code, message, retryAfter_s }) {
  if (code === "server_not_ready") {
    return {
      kind: "server-starting",
      title: "The server is warming up",
      text: message || "Its models are still being loaded.",
      steps: ["Connect again in some seconds."],
      remedies: ["call"],
    };
  }
  if (status === 401) {
    return {
      kind: "key-refused",
      title: "The server wants a key",
      text: message || "It did not accept this call without one, or not with this one.",
      steps: ["Enter the API key in the settings, then connect again."],
      remedies: ["settings", "call"],
    };
  }
  if (code === NOT_ALLOWED) {
    const origin = globalThis.location?.origin ?? "this page's origin";
    return {
      kind: "page-refused",
      title: "The server takes no calls from this page",
      text: message || `It is not told to let ${origin} in.`,
      steps: [`Add ${origin} to the server's setting gateway.allowed_origins, and start it again.`],
      remedies: ["call"],
    };
  }
  if (status === 503 || status === 429) {
    return {
      kind: "server-full",
      title: "All lines are busy",
      text: message || "The server holds as many calls as it can.",
      steps: [
        retryAfter_s
          ? `Try again in ${inWords(retryAfter_s)}.`
          : "Try again in a moment, when somebody has hung up.",
      ],
      remedies: ["call"],
    };
  }
  if (status === 404) {
    return {
      kind: "server-refused",
      title: "The server does not know this model",
      text: message || "It answered 404 to the call.",
      steps: ["Choose another model in the settings."],
      remedies: ["settings", "call"],
    };
  }
  if (status > 0) {
    return {
      kind: "server-refused",
      title: "The server did not take the call",
      text: message || `It answered with status ${status}.`,
      steps: [
        "Connect again. A proxy in between must pass on WebSockets and the Host header.",
        "The server's log says more.",
      ],
      remedies: ["call"],
    };
  }
  return {
    kind: "server-gone",
    title: "The server does not answer",
    text: "It is not running, or the network between is broken.",
    steps: ["Check that Duologue runs (make serve), then connect again."],
    remedies: ["call"],
  };
}

/**
 * @param {Closing} closing of a call that was on
 * @param {string} lastErrorCode of the last `error` event, empty for none
 * @returns {Problem}
 */
export function closingProblem({ code, reason, wasStalled }, lastErrorCode) {
  const again = "Connect again to start a new conversation. What was said stays on this page.";
  if (wasStalled) {
    return {
      kind: "line-stalled",
      title: "The line is too slow",
      text: "Five seconds of your voice could not be sent, so the call was ended.",
      steps: ["Move closer to the access point, or use another network.", again],
      remedies: ["call"],
    };
  }
  if (lastErrorCode === "session_expired") {
    return {
      kind: "session-expired",
      title: "The call reached its longest duration",
      text: reason || "The server ends every call after a set time.",
      steps: [again],
      remedies: ["call"],
    };
  }
  if (code === 1013) {
    return {
      kind: "server-full",
      title: "All lines are busy",
      text: reason || "The server cannot go on with this call.",
      steps: ["Try again in a moment."],
      remedies: ["call"],
    };
  }
  const isGoodbye = code === 1000 || code === 1001;
  return {
    kind: "connection-lost",
    title: isGoodbye ? "The server ended the call" : "The connection broke",
    text: reason || (isGoodbye ? "It may be restarting." : "The server or the network went away."),
    steps: [again],
    remedies: ["call"],
  };
}

/**
 * @param {string} code the server's word for why it does not go on with the session
 * @returns {Problem}
 */
export function sessionGone(code) {
  return {
    kind: "session-gone",
    title: "The call could not be gone on with",
    text: `The connection broke, and the server has ended the call meanwhile (${code}).`,
    steps: ["Connect again to start a new conversation. What was said stays on this page."],
    remedies: ["call"],
  };
}

/** @returns {Problem} */
export function unreachable() {
  return {
    kind: "connection-lost",
    title: "The connection broke",
    text: "The server could not be reached any more, though it was tried for a while.",
    steps: [
      "Check the network, then connect again to start a new conversation. What was said stays on " +
        "this page.",
    ],
    remedies: ["call"],
  };
}

/**
 * @param {string} why
 * @returns {Problem}
 */
export function webrtcProblem(why) {
  return {
    kind: "webrtc-blocked",
    title: "WebRTC does not get through",
    text: why,
    steps: [
      "Choose WebSocket in the settings, which goes wherever this page goes.",
      "Or let UDP through, or give the server a TURN relay (docs/webrtc.md).",
    ],
    remedies: ["settings", "call"],
  };
}

/**
 * @param {string} message
 * @returns {Problem}
 */
export function keyProblem(message) {
  return {
    kind: "key-refused",
    title: "There is no key for this call",
    text: message,
    steps: [
      "Let your own server ask for a client secret (POST /v1/realtime/client_secrets), and hand " +
        "that to the page: it begins with ek_ and expires.",
    ],
    remedies: ["settings", "call"],
  };
}

/**
 * @param {unknown} error
 * @returns {Problem}
 */
export function soundProblem(error) {
  return {
    kind: "sound-failed",
    title: "Sound does not start",
    text: error instanceof Error ? error.message : String(error),
    steps: ["Reload the page. If that does not help, use another browser."],
    remedies: ["call"],
  };
}

/** @returns {Problem} */
export function hungUp() {
  return {
    kind: "hung-up",
    title: "The call was given up",
    text: "It was hung up before the server took it.",
    steps: [],
    remedies: ["call"],
  };
}

/** @returns {Problem} */
export function soundSuspended() {
  return {
    kind: "sound-suspended",
    title: "Sound is paused",
    text: "The browser or the system paused it, for a phone call perhaps.",
    steps: [],
    remedies: ["resume"],
  };
}

/** @param {number} seconds */
function inWords(seconds) {
  if (seconds < 90) return seconds === 1 ? "1 second" : `${seconds} seconds`;
  return `${Math.round(seconds / 60)} minutes`;
}
