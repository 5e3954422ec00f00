/**
 * Builds the page: parts, views, and the wires between them. Holds no logic of its own.
 */

import { secretFor } from "./key.js";
import { Readiness } from "./readiness.js";
import { DuologueCall, environmentProblem } from "./sdk/duologue.js";
import { callOptions, conversationOptions, lineOptions, load, save } from "./settings.js";
import { Chat } from "./view/chat.js";
import { Controls } from "./view/controls.js";
import { ILLUSTRATION_NOW_MS, illustration } from "./view/illustration.js";
import { LatencyReadout } from "./view/latency-readout.js";
import { ProblemCard } from "./view/problem-card.js";
import { SettingsPanel } from "./view/settings-panel.js";
import { TimelineCanvas } from "./view/timeline-canvas.js";
import { WakeLock } from "./view/wake-lock.js";

/** @typedef {import("./sdk/wire/problems.js").Remedy} Remedy */

const NOTICE_MS = 6000;

/** @param {string} id */
const byId = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

const settings = load(localStorage);
const baseUrl = new URL("../v1", document.baseURI);
let typedKey = "";
const call = new DuologueCall({
  ...callOptions(settings),
  url: baseUrl,
  key: () => secretFor(typedKey, baseUrl, (...request) => fetch(...request)),
});

new Chat(byId("chat"), byId("announcer"), call);
new LatencyReadout(document, call);
const controls = new Controls(document, call, settings.volume);
const problems = new ProblemCard(document);
const panel = new SettingsPanel(document, settings);
const canvas = new TimelineCanvas(/** @type {HTMLCanvasElement} */ (byId("timeline")));
const wakeLock = new WakeLock(document);
const calm = window.matchMedia("(prefers-reduced-motion: reduce)");
const sketch = illustration();
const readiness = new Readiness(new URL("../ready", document.baseURI), (...request) => fetch(...request));
let isDrawing = false;
let hasMicrophone = true;

call.on("state", () => {
  controls.render();
  wakeLock.want(call.phase === "live");
  startDrawing();
});
call.on("problem", (problem) => {
  problems.show(problem);
  readiness.want(problem?.kind === "server-starting");
});
readiness.onReady = () => dial(hasMicrophone);
call.on("notice", notify);
controls.onConnect = () => dial(true);
controls.onVolume = (/** @type {number} */ volume) => {
  settings.volume = volume;
  save(localStorage, settings);
  call.configure({ volume });
};
panel.onMicrophone = () => call.configure({ microphone: callOptions(settings).microphone });
panel.onSpeaker = () => call.configure({ speakerId: settings.speakerId });
panel.onSession = () => {
  call.configure(conversationOptions(settings));
  controls.render();
};
panel.onLine = () => call.configure(lineOptions(settings));
panel.onKey = (/** @type {string} */ key) => {
  typedKey = key;
};
byId("open-settings").onclick = () => panel.open();
problems.onRemedy = (/** @type {Remedy} */ remedy) => {
  if (remedy === "call") dial(true);
  else if (remedy === "type") dial(false);
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

/** @param {boolean} withMicrophone */
function dial(withMicrophone) {
  hasMicrophone = withMicrophone;
  readiness.want(false);
  call.start({ withMicrophone }).catch(() => {}); // the problem card says what it was
}

function redraw() {
  canvas.fit();
  draw();
}

function draw() {
  if (call.phase === "idle") canvas.draw(sketch.timeline, ILLUSTRATION_NOW_MS, sketch.upcoming, false);
  else canvas.draw(call.timeline, performance.now(), call.upcoming(), calm.matches);
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
