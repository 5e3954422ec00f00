/**
 * A call over WebRTC: sound travels on tracks, and the server, which plays it, knows what was heard.
 */

import { TrackPlayer } from "../audio/track-player.js";
import { ServerPlays } from "../call/heard-reports.js";
import { TrackSpeaker } from "../call/track-speaker.js";
import { callsUrl } from "../wire/line.js";
import { ReofferingLine } from "../wire/reoffering-line.js";
import { WebRtcLine } from "../wire/webrtc-line.js";

/** @typedef {import("./transport.js").Transport} Transport */

/** @implements {Transport} */
export class WebRtcTransport {
  name = /** @type {const} */ ("webrtc");
  isDuplex = false;
  onFull = () => {};
  line = new ReofferingLine(() => new WebRtcLine());
  sound = new TrackPlayer();
  speaker = new TrackSpeaker(() => performance.now());
  heard = new ServerPlays((event) => this.line.send(event));

  #online = () => this.line.hurry();

  /** @param {{ iceServers: RTCIceServer[] }} options */
  constructor({ iceServers }) {
    this.line.iceServers = iceServers;
    this.line.onStream = (stream) => this.sound.play(stream);
    this.speaker.onSilence = (isSilent) => this.sound.setSilent(isSilent);
  }

  /** @param {import("./transport.js").Listener} listener */
  listen(listener) {
    this.line.onEvent = (event) => {
      // The answer first, then what is heard of it.
      listener.receive(event);
      this.speaker.receive(event);
    };
    this.speaker.onReport = (report) => listener.played(report);
    this.sound.onChunk = (pcm, at_ms) => {
      this.speaker.tick();
      listener.hearAnswer(pcm, at_ms);
    };
  }

  /** @param {import("./transport.js").Follower} follower */
  follow({ nextKey, reconnecting, reconnected }) {
    this.line.nextKey = nextKey;
    this.line.onReconnected = reconnected;
    this.line.onReconnecting = (attempt) => {
      this.speaker.pause();
      reconnecting(attempt);
    };
    globalThis.addEventListener("online", this.#online);
  }

  /**
   * @param {URL} baseUrl
   * @param {string} model
   * @param {string} key
   */
  connect(baseUrl, model, key) {
    this.line.connect(callsUrl(baseUrl, model), key);
  }

  /** @param {MediaStreamTrack | null} track */
  setTrack(track) {
    this.line.setTrack(track);
  }

  /** @param {boolean} isOpen */
  setOpen(isOpen) {
    this.line.setOpen(isOpen);
  }

  close() {
    globalThis.removeEventListener("online", this.#online);
    this.line.close();
    this.sound.close();
  }
}
