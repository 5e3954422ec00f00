/**
 * The ways a call can go: a line for events, a loudspeaker, and how the server learns what was
 * heard. A new way is one file beside this one, and its line below.
 */

import { WebRtcTransport } from "./webrtc.js";
import { WebSocketTransport } from "./websocket.js";

/** @typedef {import("../wire/line.js").RealtimeEvent} RealtimeEvent */

/**
 * @typedef {object} Listener
 * @property {(event: RealtimeEvent) => void} receive
 * @property {(report: import("../audio/playback.js").PlaybackReport) => void} played
 * @property {(pcm: Int16Array, at_ms: number) => void} hearAnswer what a track brings
 */

/**
 * @typedef {object} Follower of what becomes of a lost line
 * @property {() => Promise<string>} nextKey
 * @property {(attempt: { attempt: number, wait_s: number }) => void} reconnecting
 * @property {(back: { gap_s: number, attempts: number, dropped_ms: number }) => void} reconnected
 */

/**
 * @typedef {object} Sound
 * @property {(isSuspended: boolean) => void} onSuspended
 * @property {() => Promise<void>} open
 * @property {(volume: number) => void} setVolume
 * @property {(speakerId: string) => Promise<void>} chooseSpeaker
 * @property {() => void} resume
 */

/**
 * @typedef {object} Transport
 * @property {"websocket" | "webrtc"} name
 * @property {boolean} isDuplex the session begins with what the client says of it
 * @property {import("../wire/line.js").Line} line
 * @property {Sound} sound
 * @property {import("../call/conversation.js").Speaker} speaker
 * @property {import("../call/heard-reports.js").HeardReports} heard
 * @property {(listener: Listener) => void} listen
 * @property {(follower: Follower) => void} follow
 * @property {(baseUrl: URL, model: string, key: string) => void} connect
 * @property {(track: MediaStreamTrack | null) => void} setTrack the microphone's
 * @property {(isOpen: boolean) => void} setOpen false: of a track only silence is sent
 * @property {() => void} onFull audio had to be dropped
 * @property {() => void} close
 */

/**
 * @param {"websocket" | "webrtc"} name
 * @param {{ isDuplex: boolean, iceServers: RTCIceServer[] }} options
 * @returns {Transport}
 */
export function transportOf(name, { isDuplex, iceServers }) {
  return name === "webrtc" ? new WebRtcTransport({ iceServers }) : new WebSocketTransport({ isDuplex });
}
