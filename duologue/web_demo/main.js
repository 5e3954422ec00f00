/**
 * Builds the page: parts, views, and the wires between them. Holds no logic of its own.
 */

import { Microphone } from "./audio/microphone.js";
import { Playback } from "./audio/playback.js";
import { Call } from "./call/call.js";
import { Latency } from "./call/latency.js";
import { load, save } from "./call/settings.js";
import { Timeline } from "./call/timeline.js";
import { Transcript } from "./call/transcript.js";
import { Chat } from "./view/chat.js";
import { Controls } from "./view/controls.js";
import { ILLUSTRATION_NOW_MS, illustration } from "./view/illustration.js";
import { LatencyReadout } from "./view/latency-readout.js";
import { ProblemCard } from "./view/problem-card.js";
import { SettingsPanel } from "./view/settings-panel.js";
import { TimelineCanvas } from "./view/timeline-canvas.js";
import { WakeLock } from "./view/wake-lock.js";
import { Connection } from "./wire/connection.js";
import { environmentProblem } from "./wire/problems.js";

/** @typedef {import("./wire/problems.js").Problem} Problem */
/** @typedef {import("./wire/problems.js").Remedy} Remedy */

const NOTICE_MS = 6000;

/** @param {string} id */
const byId = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

const settings = load(localStorage);
const playback = new Playback();
const transcript = new Transcript();
const timeline = new Timeline();
const latency = new Latency();
const call = new Call({
  connection: new Connection(),
  microphone: new Microphone(),
  playback,
  transcript,
  timeline,
  latency,
  settings,
  scope: window,
});

new Chat(byId("chat"), byId("announcer"), transcript);
new LatencyReadout(document, latency);
const controls = new Controls(document, call, settings.volume);
const problems = new ProblemCard(document);
const panel = new SettingsPanel(document, settings);
const canvas = new TimelineCanvas(/** @type {HTMLCanvasElement} */ (byId("timeline")));
const wakeLock = new WakeLock(document);
const calm = window.matchMedia("(prefers-reduced-motion: reduce)");
const sketch = illustration();
let isDrawing = false;

call.onChange = () => {
  controls.render();
  wakeLock.want(call.phase === "live");
  startDrawing();
};
call.onProblem = (/** @type {Problem | null} */ problem) => problems.show(problem);
call.onNotice = notify;
controls.onVolume = (/** @type {number} */ volume) => {
  settings.volume = volume;
  save(localStorage, settings);
  playback.setVolume(volume);
};
panel.onMicrophone = () => void call.applyMicrophone();
panel.onSpeaker = () => void call.chooseSpeaker();
panel.onSession = () => call.applySession();
panel.onKey = (/** @type {string} */ apiKey) => {
  call.apiKey = apiKey;
};
byId("open-settings").onclick = () => panel.open();
problems.onRemedy = (/** @type {Remedy} */ remedy) => {
  if (remedy === "call") void call.dial({ withMicrophone: true });
  else if (remedy === "type") void call.dial({ withMicrophone: false });
  else if (remedy === "settings") panel.open();
  else call.resumeSound();
};
navigator.mediaDevices?.addEventListener("devicechange", () => void panel.listDevices());
for (const query of [calm, window.matchMedia("(prefers-color-scheme: dark)")]) {
  query.addEventListener("change", redraw);
}
new ResizeObserver(redraw).observe(byId("timeline"));

controls.render();
problems.show(environmentProblem(window));
void offerModels();

function redraw() {
  canvas.fit();
  draw();
}

function draw() {
  if (call.phase === "idle") canvas.draw(sketch.timeline, ILLUSTRATION_NOW_MS, sketch.upcoming, false);
  else canvas.draw(timeline, performance.now(), call.upcoming(), calm.matches);
}

function startDrawing() {
  if (isDrawing) return;
  isDrawing = true;
  requestAnimationFrame(drawNext);
}

function drawNext() {
  draw();
  isDrawing = call.phase === "connecting" || call.phase === "live";
  if (isDrawing) requestAnimationFrame(drawNext);
}

/** @param {string} text */
function notify(text) {
  const notice = byId("notice");
  notice.textContent = text;
  setTimeout(() => {
    if (notice.textContent === text) notice.textContent = "";
  }, NOTICE_MS);
}

async function offerModels() {
  try {
    const response = await fetch(new URL("../v1/models", document.baseURI));
    const { data } = await response.json();
    panel.offerModels(data.map((/** @type {{ id: string }} */ { id }) => id));
  } catch {
    return; // an older server, or none: its own choice will do
  }
}
