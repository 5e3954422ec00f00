/**
 * A line over WebRTC: one offer by HTTP, then events on a data channel and sound on a track, both
 * ways. Knows the transport and no event but its envelope.
 */

import { refusalProblem, webrtcProblem } from "./problems.js";

/** @typedef {import("./line.js").Line} Line */
/** @typedef {import("./line.js").RealtimeEvent} RealtimeEvent */
/** @typedef {import("./line.js").Closing} Closing */

const CHANNEL = "oai-events";
/** Candidates of this machine are there at once; those of a STUN server may never come. */
const GATHER_TIMEOUT_MS = 2000;
const ANSWER_TIMEOUT_MS = 8000;
/** From the answer to the open channel: a network that lets WebRTC through needs far less. */
const OPEN_TIMEOUT_MS = 6000;
/** A network that comes back within this time has cost a gap, not the call. */
const RETURN_TIMEOUT_MS = 10_000;
/** Where another call could go on with the session, that is sooner there. */
const REPLACE_TIMEOUT_MS = 2000;
const MAX_BACKLOG_BYTES = 320_000;
const NOT_IMPLEMENTED = 501;

/** @implements {Line} */
export class WebRtcLine {
  /** @type {RTCPeerConnection | null} */
  #peer = null;
  /** @type {RTCDataChannel | null} */
  #channel = null;
  /** @type {RTCRtpSender | null} */
  #sender = null;
  /** @type {MediaStreamTrack | null} */
  #track = null;
  #isOpen = false;
  #timer = 0;
  #wasOpen = false;
  #sentEvents = 0;
  /** Where the server answers requests about this call. @type {URL | null} */
  #location = null;
  #key = "";
  #left;

  /** @type {RTCIceServer[]} for networks that let nothing through but a relay */
  iceServers = [];
  /** The session outlives this line, so a line that fails must not end it. */
  isOneOfSeveral = false;
  onOpen = () => {};
  /** @type {(event: RealtimeEvent) => void} */
  onEvent = () => {};
  /** @type {(closing: Closing) => void} Called once; not after `close`. */
  onClosed = () => {};
  /** @type {(stream: MediaStream) => void} the server's sound */
  onStream = () => {};

  constructor() {
    // A page that is left says so: else the server would hold its place until the silence is long.
    this.#left = () => this.close();
  }

  /** @param {MediaStreamTrack | null} track the microphone's; null: nothing is sent */
  setTrack(track) {
    this.#track?.stop();
    // A copy, so that it can be silent for the server and still show on this side.
    this.#track = track?.clone() ?? null;
    this.setOpen(this.#isOpen);
    void this.#sender?.replaceTrack(this.#track);
  }

  /** @param {boolean} isOpen false: silence is sent */
  setOpen(isOpen) {
    this.#isOpen = isOpen;
    if (this.#track) this.#track.enabled = isOpen;
  }

  /**
   * @param {URL} url where offers are posted to
   * @param {string} key empty for none
   */
  connect(url, key) {
    void this.#dial(url, key);
  }

  /** @param {RealtimeEvent} event */
  send(event) {
    const channel = this.#channel;
    if (!channel || channel.readyState !== "open") return;
    if (channel.bufferedAmount > MAX_BACKLOG_BYTES) {
      this.#end({ wasStalled: true });
      return;
    }
    this.#sentEvents += 1;
    channel.send(JSON.stringify({ event_id: `event_${this.#sentEvents}`, ...event }));
  }

  close() {
    // Without it the server would learn of the end only by the silence.
    if (this.#location) void hangUp(this.#location, this.#key);
    this.#release();
  }

  /**
   * @param {URL} url
   * @param {string} key
   */
  async #dial(url, key) {
    this.#wasOpen = false;
    this.#location = null;
    this.#key = key;
    /** @type {RTCPeerConnection} */
    let peer;
    try {
      peer = new RTCPeerConnection({ iceServers: this.iceServers });
    } catch {
      this.#blocked("This browser has no WebRTC, or it is switched off.");
      return;
    }
    this.#peer = peer;
    globalThis.addEventListener("pagehide", this.#left);
    this.#sender = peer.addTransceiver(this.#track ?? "audio", { direction: "sendrecv" }).sender;
    this.#listen(peer, peer.createDataChannel(CHANNEL));
    try {
      await peer.setLocalDescription();
      await gathered(peer);
      if (this.#peer !== peer) return;
      const sdp = peer.localDescription?.sdp ?? "";
      if (!sdp.includes("a=candidate:")) {
        this.#blocked("The browser names no address at which WebRTC could reach it.");
        return;
      }
      const answer = await post(url, key, sdp);
      if (this.#peer !== peer) return;
      if (!answer.ok) {
        await this.#refused(answer);
        return;
      }
      const location = answer.headers.get("Location");
      this.#location = location ? new URL(location, url) : null;
      const remote = await answer.text();
      if (this.#peer !== peer) return;
      await peer.setRemoteDescription({ type: "answer", sdp: remote });
      this.#timer = setTimeout(
        () => this.#blocked("The network lets no WebRTC through to the server."),
        OPEN_TIMEOUT_MS,
      );
    } catch {
      // No answer: whether the server is gone or refuses is found out by asking it again.
      if (this.#peer === peer) this.#end({});
    }
  }

  /**
   * @param {RTCPeerConnection} peer
   * @param {RTCDataChannel} channel
   */
  #listen(peer, channel) {
    this.#channel = channel;
    peer.ontrack = ({ track, streams }) => this.onStream(streams[0] ?? new MediaStream([track]));
    peer.onconnectionstatechange = () => this.#stateChanged(peer.connectionState);
    channel.onopen = () => {
      clearTimeout(this.#timer);
      this.#wasOpen = true;
      this.onOpen();
    };
    channel.onmessage = ({ data }) => {
      if (typeof data === "string") this.onEvent(JSON.parse(data));
    };
    channel.onclose = () => this.#end({});
  }

  /** @param {RTCPeerConnectionState} state */
  #stateChanged(state) {
    if (!this.#wasOpen) return; // the time-out speaks for a connection that never comes about
    clearTimeout(this.#timer);
    if (state === "failed") this.#end({});
    else if (state === "disconnected") {
      const wait_ms = this.isOneOfSeveral ? REPLACE_TIMEOUT_MS : RETURN_TIMEOUT_MS;
      this.#timer = setTimeout(() => this.#end({}), wait_ms);
    }
  }

  /** @param {Response} answer */
  async #refused(answer) {
    const { error } = await answer.json().catch(() => ({ error: null }));
    if (answer.status === NOT_IMPLEMENTED) {
      this.#blocked("The server takes no calls over WebRTC.");
      return;
    }
    const refusal = {
      status: answer.status,
      code: error?.code ?? "",
      message: error?.message ?? "",
      retryAfter_s: Number(answer.headers.get("Retry-After")) || 0,
    };
    this.#end({ problem: refusalProblem(refusal), refusedWith: refusal.code });
  }

  /** @param {string} why */
  #blocked(why) {
    this.#end({ isBlocked: true, problem: webrtcProblem(why) });
  }

  /** @param {Partial<Closing>} closing */
  #end(closing) {
    const wasOpen = this.#wasOpen;
    if (!wasOpen && this.#location && !this.isOneOfSeveral) void hangUp(this.#location, this.#key);
    this.#release();
    this.onClosed({ code: 1006, reason: "", wasOpen, wasStalled: false, ...closing });
  }

  #release() {
    clearTimeout(this.#timer);
    const peer = this.#peer;
    globalThis.removeEventListener("pagehide", this.#left);
    this.#track?.stop();
    this.#track = null;
    if (this.#channel) this.#channel.onclose = null;
    this.#peer = null;
    this.#channel = null;
    this.#sender = null;
    this.#location = null;
    if (!peer) return;
    peer.onconnectionstatechange = null;
    peer.ontrack = null;
    peer.close();
  }
}

/**
 * @param {RTCPeerConnection} peer
 * @returns {Promise<void>}
 */
function gathered(peer) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, GATHER_TIMEOUT_MS);
    const look = () => {
      if (peer.iceGatheringState !== "complete") return;
      clearTimeout(timer);
      resolve();
    };
    peer.onicegatheringstatechange = look;
    look();
  });
}

/**
 * @param {URL} url
 * @param {string} key
 * @param {string} sdp
 */
function post(url, key, sdp) {
  return fetch(url, {
    method: "POST",
    headers: { "Content-Type": "application/sdp", ...authorization(key) },
    body: sdp,
    signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS),
  });
}

/**
 * @param {URL} call
 * @param {string} key
 */
async function hangUp(call, key) {
  const url = `${call.href}/hangup`;
  // A page that is being left still sends it.
  await fetch(url, { method: "POST", headers: authorization(key), keepalive: true }).catch(() => {});
}

/**
 * @param {string} key
 * @returns {Record<string, string>}
 */
function authorization(key) {
  return key ? { Authorization: `Bearer ${key}` } : {};
}
