// What the callers share: their orders, a microphone, the wait for news, complaints, the report.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

const CHUNK_MS = 50;
const PATIENCE_MS = 45_000;

export const RATE_HZ = 24_000;
export const BASE_URL = process.env.DUOLOGUE_BASE_URL;
export const API_KEY = process.env.DUOLOGUE_API_KEY;
export const WS_URL = `${BASE_URL.replace("http", "ws")}/realtime?model=duologue`;

const spoken = (name) => join(process.env.DUOLOGUE_SPEECH, `${name}.pcm`);

/** What is said, as s16le PCM. */
export const speech = (name) => readFileSync(spoken(name));

export const QUESTION = "question";
/** The server has real models: one question is asked, and whatever they answer is reported. */
export const ONE_QUESTION = existsSync(spoken(QUESTION));

/** Hand speech and some quiet to `send`, at the pace of a microphone. */
export async function say(pcm, send, quietMs = 1500) {
  const audio = Buffer.concat([pcm, Buffer.alloc((RATE_HZ * 2 * quietMs) / 1000)]);
  const size = (RATE_HZ * 2 * CHUNK_MS) / 1000;
  let due = performance.now();
  for (let start = 0; start < audio.length; start += size) {
    const chunk = audio.subarray(start, start + size);
    send(chunk.buffer.slice(chunk.byteOffset, chunk.byteOffset + chunk.length));
    due += CHUNK_MS;
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, due - performance.now())));
  }
}

/** News from a client, and the wait for some of it. */
export class Heard {
  notes = {};
  #waiting = new Set();

  note(notes) {
    Object.assign(this.notes, notes);
    for (const look of this.#waiting) look();
  }

  count(name, more = 1) {
    this.note({ [name]: (this.notes[name] ?? 0) + more });
  }

  /** Wait until there is a note of this name, and where it counts, for this number. */
  until(name, least = 1) {
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => {
        this.#waiting.delete(look);
        reject(new Error(`no ${name} (${least}) came, only ${JSON.stringify(this.notes)}`));
      }, PATIENCE_MS);
      const look = () => {
        const seen = this.notes[name];
        if (typeof seen === "number" ? seen < least : !seen) return;
        clearTimeout(late);
        this.#waiting.delete(look);
        resolve();
      };
      this.#waiting.add(look);
      look();
    });
  }
}

/** All that is written to the console as a warning or an error. */
export function complaints() {
  const said = [];
  for (const kind of ["warn", "error"]) console[kind] = (...words) => said.push(words.join(" "));
  return said;
}

/** Say what happened, as the last line, and leave. */
export function report(heard, said) {
  console.log(`REPORT ${JSON.stringify({ ...heard.notes, complaints: said })}`);
  process.exit(0);
}
