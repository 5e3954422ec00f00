import assert from "node:assert/strict";
import { test } from "node:test";
import { Readiness } from "../../../duologue/web_demo/readiness.js";

const URL_OF_READY = new URL("http://server/ready");

/** A server that gives these answers, then no more. */
function server(...answers) {
  const asked = [];
  const ask = async (url) => {
    asked.push(url.href);
    const answer = answers.shift();
    if (answer === undefined) throw new TypeError("nobody is there");
    return { ok: answer };
  };
  return { ask, asked };
}

test("it is asked until it is ready, also where nothing answers meanwhile, and then no more", async () => {
  const { ask, asked } = server(false, undefined, true, true);
  const readiness = new Readiness(URL_OF_READY, ask, 1);
  await new Promise((resolve) => {
    readiness.onReady = resolve;
    readiness.want(true);
  });
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.deepEqual(asked, Array(3).fill(URL_OF_READY.href));
});

test("an answer that comes when nobody waits any more leads to nothing", async () => {
  let reply = () => {};
  const readiness = new Readiness(URL_OF_READY, () => new Promise((done) => (reply = done)), 0);
  readiness.onReady = () => assert.fail("nobody waited");
  readiness.want(true);
  await new Promise((resolve) => setTimeout(resolve, 20));
  readiness.want(false);
  reply({ ok: true });
  await new Promise((resolve) => setTimeout(resolve, 20));
});

test("a server that does not answer is asked again", async () => {
  let asked = 0;
  const hangsOnce = (_url, { signal }) =>
    ++asked > 1
      ? Promise.resolve({ ok: true })
      : new Promise((_done, fail) => {
          // The timer of a signal keeps no process alive.
          const alive = setInterval(() => {}, 1000);
          signal.addEventListener("abort", () => {
            clearInterval(alive);
            fail(signal.reason);
          });
        });
  const readiness = new Readiness(URL_OF_READY, hangsOnce, 0, 5);
  await new Promise((resolve) => {
    readiness.onReady = resolve;
    readiness.want(true);
  });
  assert.equal(asked, 2);
});
