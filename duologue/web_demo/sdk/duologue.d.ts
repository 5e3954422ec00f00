/** Types of duologue.js: a spoken call with a Duologue gateway. See docs/browser.md. */

/** Milliseconds whose names end in `at_ms` are those of `performance.now()`. */

export type Phase = "idle" | "connecting" | "live" | "ended";
export type TransportName = "websocket" | "webrtc";
export type Side = "you" | "duologue";

/** Any event of the Realtime API, of either side. */
export interface RealtimeEvent {
  type: string;
  [field: string]: any;
}

export interface Floor {
  you: boolean;
  duologue: boolean;
  /** An answer is on its way. */
  thinking: boolean;
}

export interface State {
  phase: Phase;
  floor: Floor;
  hasMicrophone: boolean;
  isMuted: boolean;
  /** The line is lost, and is dialled again; the call goes on. */
  isReconnecting: boolean;
  /** How the call goes: it differs from the options after a fallback. */
  transport: TransportName;
}

/** One side's words. The same object comes again whenever something of it has changed. */
export interface Entry {
  /** Of the conversation item. */
  id: string;
  speaker: Side | "note";
  text: string;
  /** Of Duologue's words, `text.slice(0, heardCharacters)` has been heard. */
  heardCharacters: number;
  /** Yours: listening, pending, partial, final, failed. Duologue's: speaking, heard, cut. */
  state: "listening" | "pending" | "partial" | "final" | "failed" | "speaking" | "heard" | "cut";
  /** How long this answer was waited for. */
  latency_s: number | null;
}

/** What went wrong, in words for the person in front of the page. */
export interface Problem {
  /** For programs: microphone-denied, server-full, key-refused, webrtc-blocked, connection-lost... */
  kind: string;
  title: string;
  text: string;
  /** What to do, in order. */
  steps: string[];
  /** What a page may offer as buttons: dial again, go on by typing, settings, resume the sound. */
  remedies: ("call" | "type" | "settings" | "resume")[];
}

export interface ToolResult {
  name: string;
  callId: string;
  /** What the model was told. */
  output: string;
  isError: boolean;
}

export interface CallEvents {
  state: State;
  transcript: Entry;
  /** The id of an entry that is gone: a cough that was no turn, for one. */
  "transcript-removed": string;
  /** Every 20 ms of each side; 0 to 1. */
  level: { side: Side; at_ms: number; level: number };
  /** Duologue was interrupted; `unheard` are levels of what was never played, as far as it came. */
  cut: { at_ms: number; unheard: number[] };
  /** From the end of your turn to the first sound of the answer. */
  latency: { seconds: number; kind: "spoken" | "typed" };
  tool: ToolResult;
  /** The line is lost, and is dialled again; before each attempt. */
  reconnecting: { attempt: number; wait_s: number };
  /** The call goes on where it stood. `dropped_ms` of your voice was too much to be kept. */
  reconnected: { gap_s: number; attempts: number; dropped_ms: number };
  /** Something the person should know, once. */
  notice: string;
  /** null: the last one is over. */
  problem: Problem | null;
  /** Every event of the server, after the call has taken it in. */
  event: RealtimeEvent;
}

export interface Tool {
  /** What it does and when to call it, for the model. */
  description: string;
  /** JSON schema of its one argument, an object. */
  parameters?: object;
  /**
   * Returns what the model is told, or a promise of it: text as it is, anything else as JSON.
   * What it throws, the model is told as an error. `signal` is aborted when it takes too long, and
   * at the end of the call.
   */
  run(args: any, context: { signal: AbortSignal; callId: string }): unknown;
  /** 30 where it says nothing. */
  timeout_s?: number;
}

export interface MicrophoneOptions {
  /** Empty for the system's own choice. */
  deviceId?: string;
  echoCancellation?: boolean;
  noiseSuppression?: boolean;
  autoGainControl?: boolean;
}

export interface CallOptions {
  /** Of the API, which ends in `/v1`; where it is left out, of the gateway the module came from. */
  url?: string | URL;
  /** "websocket" where it is left out. */
  transport?: TransportName;
  /** True where it is left out: a call whose WebRTC does not get through goes over WebSocket. */
  fallback?: boolean;
  /** Of the WebSocket; "duplex" acknowledges playback all along (docs/duplex.md). */
  dialect?: "realtime" | "duplex";
  /** A client secret (`ek_...`), or who gets one from your server; never an API key. */
  key?: string | (() => string | Promise<string>);
  model?: string;
  /** As in `session.update`: instructions, voice, turn detection... */
  session?: { [field: string]: any };
  /** The person ends each turn by hand: `press` and `release`. */
  pushToTalk?: boolean;
  microphone?: MicrophoneOptions;
  speakerId?: string;
  /** 0 to 1. */
  volume?: number;
  tools?: { [name: string]: Tool };
  /** For networks that let WebRTC through by a relay only. */
  iceServers?: RTCIceServer[];
}

/** A call that did not come about. */
export class CallError extends Error {
  constructor(problem: Problem);
  readonly problem: Problem;
}

/** Why no call can be held here at all (no secure context, a browser that is too old), or null. */
export function environmentProblem(scope: { [name: string]: any }): Problem | null;

/**
 * Makes of a JPEG, PNG or WebP what shows it to a model that sees, with the dialect "duplex":
 * `call.send(await videoFrame(blob))`. What becomes of it is said in events, by its `frameId`.
 */
export function videoFrame(picture: Blob, frameId?: string | null): Promise<RealtimeEvent>;

/** One call after another. */
export class DuologueCall {
  /** @throws {TypeError} where an option does not exist, or two do not go together */
  constructor(options?: CallOptions);

  readonly phase: Phase;
  readonly floor: Floor;
  readonly hasMicrophone: boolean;
  readonly isMuted: boolean;
  readonly isReconnecting: boolean;
  readonly startedAt_ms: number;
  readonly transport: TransportName;
  readonly options: Required<CallOptions>;
  /** Both sides' words in the order of the conversation, over all calls of this object. */
  readonly transcript: { readonly entries: Entry[]; find(id: string): Entry | undefined };
  /** The last half minute in two lanes, for pictures; bins are 80 ms of `performance.now()`. */
  readonly timeline: {
    readonly turns: { lane: Side; from_ms: number; to_ms: number | null }[];
    readonly waits: { from_ms: number; to_ms: number }[];
    readonly cuts: { at_ms: number; unheard: number[] }[];
    readonly waitingSince_ms: number | null;
    levelOf(lane: Side, bin: number): number;
  };
  readonly latency: {
    readonly readings: { seconds: number; kind: "spoken" | "typed" }[];
    median(): number | null;
  };

  /** Returns what takes the listener away again. */
  on<K extends keyof CallEvents>(type: K, listener: (detail: CallEvents[K]) => void): () => void;

  /**
   * Dials; call it in the handler of a click. Resolves once the call is on; rejects with a
   * `CallError`, and a `problem` event has said the same.
   */
  start(options?: { withMicrophone?: boolean }): Promise<void>;
  hangUp(): void;

  /** Changes session, turns, microphone, speaker and volume at once, the rest with the next call. */
  configure(changes: CallOptions): void;
  setMuted(isMuted: boolean): void;
  /** Asks in writing; interrupts like speech. */
  sendText(text: string): void;
  /** Ends the answer that is being given. */
  interrupt(): void;
  /** With `pushToTalk`: a turn begins. */
  press(): void;
  /** With `pushToTalk`: the turn is over, and is answered. */
  release(): void;
  /** After the problem `sound-suspended`; call it in the handler of a click. */
  resumeSound(): void;
  /** Sends any other event of the Realtime API. */
  send(event: RealtimeEvent): void;
  /** Levels of audio that has arrived and is still to be played, 20 ms each. */
  upcoming(): number[];
}
