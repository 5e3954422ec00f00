/**
 * Shows the open sessions, once a second. The key stays in this tab: it is sent in a header, never in
 * an address, and forgotten with the tab.
 */

const EVERY_MS = 1000;
const STORED = "duologue.admin-key";
const BUFFER_MS = 30_000;

const byId = (id) => document.getElementById(id);
const seconds = (ms) => `${(ms / 1000).toFixed(1)} s`;

function cell(text) {
  const element = document.createElement("td");
  element.textContent = text;
  return element;
}

function filled(ms, most) {
  const element = cell(` ${seconds(ms)}`);
  const meter = document.createElement("meter");
  meter.max = most;
  meter.value = Math.min(ms, most);
  element.prepend(meter);
  return element;
}

function row(session) {
  const element = document.createElement("tr");
  element.dataset.id = session.id;
  element.dataset.attached = session.attached;
  element.append(
    cell(session.id),
    cell(session.model),
    cell(`${session.transport}, ${session.dialect}`),
    cell(session.key),
    cell(seconds(session.age_s * 1000)),
    cell(session.attached ? session.state : `${session.state}, nobody attached`),
    filled(session.waiting_ms, BUFFER_MS),
    cell(seconds(session.unplayed_ms)),
    cell(seconds(session.heard_ms)),
    cell(session.requests),
    cell(session.stale_dropped),
  );
  return element;
}

function say(text, isProblem = false) {
  byId("summary").textContent = text;
  byId("summary").toggleAttribute("data-problem", isProblem);
}

function show({ sessions, workers, workers_ready: ready }) {
  byId("sessions").hidden = sessions.length === 0;
  byId("sessions").tBodies[0].replaceChildren(...sessions.map(row));
  const calls = sessions.length === 1 ? "1 session" : `${sessions.length} sessions`;
  say(`${calls} open; ${ready} of ${workers} workers ready`);
}

function enter(inside) {
  byId("entry").hidden = inside;
  byId("leave").hidden = !inside;
  if (!inside) byId("sessions").hidden = true;
}

/** Ask once. Returns whether it makes sense to ask again. */
async function look(key) {
  let answer;
  try {
    answer = await fetch("/debug/sessions", { headers: { Authorization: `Bearer ${key}` } });
  } catch {
    say("The server does not answer; trying again.", true);
    return true;
  }
  if (answer.status === 401) {
    sessionStorage.removeItem(STORED);
    enter(false);
    say("That is not the admin key of this server (gateway.admin_key).", true);
    return false;
  }
  if (!answer.ok) {
    say(`The server refuses with ${answer.status}; trying again.`, true);
    return true;
  }
  enter(true);
  show(await answer.json());
  return true;
}

let watching = 0;

async function watch(key) {
  watching += 1;
  const mine = watching;
  while (mine === watching && (await look(key))) {
    await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
  }
}

byId("entry").addEventListener("submit", (event) => {
  event.preventDefault();
  const key = byId("key").value;
  byId("key").value = "";
  sessionStorage.setItem(STORED, key);
  watch(key);
});

byId("leave").addEventListener("click", () => {
  watching += 1;
  sessionStorage.removeItem(STORED);
  enter(false);
  say("Enter the admin key of this server (gateway.admin_key).");
});

const stored = sessionStorage.getItem(STORED);
if (stored !== null) watch(stored);
