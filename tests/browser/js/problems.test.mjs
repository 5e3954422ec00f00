import assert from "node:assert/strict";
import { test } from "node:test";
import { CallError, problemOfKey } from "../../../duologue/web_demo/sdk/call-error.js";
import { sessionGone, unreachable } from "../../../duologue/web_demo/sdk/wire/problems.js";
import { realtimeUrl } from "../../../duologue/web_demo/sdk/wire/line.js";
import { NOT_ALLOWED, diagnose } from "../../../duologue/web_demo/sdk/wire/diagnosis.js";
import {
  closingProblem,
  environmentProblem,
  microphoneProblem,
  microphoneLost,
  refusalProblem,
  soundSuspended,
} from "../../../duologue/web_demo/sdk/wire/problems.js";

const CALL = new URL("http://host:8080/v1/realtime");

function browserError(name) {
  return Object.assign(new Error("by the browser"), { name });
}

/** Answers by path; a path without an answer is a server that is not there. */
function server(answers) {
  return async (url) => {
    const answer = answers[new URL(url).pathname];
    if (!answer) throw new TypeError("Failed to fetch");
    const [status, error = {}, headers = {}] = answer;
    return new Response(JSON.stringify({ error }), { status, headers });
  };
}

async function kindOf(answers) {
  return refusalProblem(await diagnose(CALL, "", server(answers))).kind;
}

test("each way of failing has a name of its own", async () => {
  assert.equal(await kindOf({}), "server-gone");
  assert.equal(await kindOf({ "/v1/realtime": [503, { code: "server_full" }] }), "server-full");
  assert.equal(await kindOf({ "/v1/realtime": [503, { code: "server_not_ready" }] }), "server-starting");
  assert.equal(await kindOf({ "/v1/realtime": [426], "/ready": [503] }), "server-starting");
  assert.equal(await kindOf({ "/v1/realtime": [401, { code: "invalid_api_key" }] }), "key-refused");
  assert.equal(await kindOf({ "/v1/realtime": [404, { code: "model_not_found" }] }), "server-refused");
  assert.equal(await kindOf({ "/v1/realtime": [426], "/ready": [200] }), "server-refused");
});

test("the server's own words and its time to come back are shown", async () => {
  const answers = { "/v1/realtime": [503, { code: "server_full", message: "40 of 40 calls." }, { "Retry-After": "7" }] };
  const problem = refusalProblem(await diagnose(CALL, "", server(answers)));
  assert.equal(problem.text, "40 of 40 calls.");
  assert.match(problem.steps[0], /7 seconds/);
});

test("an answer that is not JSON is understood by its status", async () => {
  const refusal = await diagnose(CALL, "", async () => new Response("<h1>Bad gateway</h1>", { status: 502 }));
  assert.equal(refusalProblem(refusal).kind, "server-refused");
});

test("the key is sent along when the server is asked why", async () => {
  const seen = [];
  await diagnose(CALL, "secret", async (_, { headers }) => {
    seen.push(headers.Authorization);
    return new Response("{}", { status: 401 });
  });
  assert.deepEqual(seen, ["Bearer secret"]);
});

test("microphone failures are told apart", () => {
  const kinds = ["NotAllowedError", "NotFoundError", "NotReadableError", "TypeError"].map(
    (name) => microphoneProblem(browserError(name)).kind,
  );
  assert.deepEqual(kinds, ["microphone-denied", "microphone-missing", "microphone-busy", "microphone-failed"]);
});

test("an address that is not secure names the one that is", () => {
  const scope = { isSecureContext: false, location: { port: "8080", hostname: "10.0.0.5" } };
  const problem = environmentProblem(scope);
  assert.equal(problem.kind, "insecure");
  assert.match(problem.steps[0], /http:\/\/localhost:8080/);
});

test("an old browser is told what it lacks, a new one nothing", () => {
  const scope = { isSecureContext: true, AudioContext: {}, WebSocket: {} };
  assert.match(environmentProblem(scope).text, /AudioWorkletNode/);
  assert.equal(environmentProblem({ ...scope, AudioWorkletNode: {} }), null);
});

test("the end of a call is explained by its code", () => {
  const closing = { code: 1006, reason: "", wasOpen: true, wasStalled: false };
  assert.equal(closingProblem(closing, "").title, "The connection broke");
  assert.equal(closingProblem({ ...closing, code: 1001 }, "").title, "The server ended the call");
  assert.equal(closingProblem({ ...closing, code: 1001 }, "session_expired").kind, "session-expired");
  assert.equal(closingProblem({ ...closing, code: 1013 }, "").kind, "server-full");
  assert.equal(closingProblem({ ...closing, wasStalled: true }, "").kind, "line-stalled");
});

test("every problem says something and offers a way on", () => {
  const closing = { code: 1006, reason: "", wasOpen: true, wasStalled: false };
  const refusal = { code: "", message: "", retryAfter_s: 0 };
  const problems = [
    ...["NotAllowedError", "NotFoundError", "NotReadableError", ""].map((name) => microphoneProblem(browserError(name))),
    ...[0, 401, 404, 429, 500, 503].map((status) => refusalProblem({ ...refusal, status })),
    closingProblem(closing, ""),
    microphoneLost(),
    soundSuspended(),
  ];
  for (const { kind, title, text, steps, remedies } of problems) {
    assert.ok(title && text, kind);
    assert.ok(steps.length + remedies.length > 0, kind);
  }
});

test("the API stands beside the page's folder, wherever that is", () => {
  assert.equal(realtimeUrl(new URL("http://h:1/v1")).href, "http://h:1/v1/realtime");
  assert.equal(realtimeUrl(new URL("http://h:1/v1/")).href, "http://h:1/v1/realtime");
  assert.equal(realtimeUrl(new URL("https://h/voice/v1"), { model: "m 1" }).href, "https://h/voice/v1/realtime?model=m+1");
});

test("a server whose answers the browser hides does not allow the page", async () => {
  const ask = async (_, { mode }) => {
    if (mode !== "no-cors") throw new TypeError("Failed to fetch");
    return { type: "opaque" };
  };
  const refusal = await diagnose(new URL("http://h/v1/realtime"), "", ask);
  assert.equal(refusal.code, NOT_ALLOWED);
  const problem = refusalProblem(refusal);
  assert.equal(problem.kind, "page-refused");
  assert.match(problem.steps[0], /allowed_origins/);
});

test("a program gets the problem in an error, whoever refused", () => {
  const error = new CallError(unreachable());
  assert.match(error.message, /^The connection broke\. .*start a new conversation/);
  assert.equal(problemOfKey(error), error.problem);
  assert.equal(problemOfKey(new TypeError("No.")).text, "No.");
  assert.equal(problemOfKey("sold out").text, "sold out");
  assert.match(sessionGone("session_resume_expired").text, /session_resume_expired/);
});
