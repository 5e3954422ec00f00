// A page in TypeScript, as docs/browser.md describes it: it only has to compile.
import { CallError, DuologueCall, environmentProblem } from "../../../../duologue/web_demo/sdk/duologue.js";

const call = new DuologueCall({
  url: new URL("https://voice.example.org/v1"),
  transport: "webrtc",
  key: async () => "ek_1",
  session: { instructions: "Be brief." },
  microphone: { echoCancellation: false },
  tools: { add: { description: "Adds.", run: ({ a, b }, { signal }) => (signal.aborted ? 0 : a + b) } },
});
const off = call.on("transcript", ({ text, heardCharacters }) => text.slice(0, heardCharacters));
call.on("level", ({ side, level }) => console.log(side === "you" ? level : -level));
call.on("problem", (problem) => problem?.steps.join(" "));
// @ts-expect-error: there is no such event
call.on("transcripts", () => {});
// @ts-expect-error: there is no such transport
new DuologueCall({ transport: "pigeon" });

export async function talk(): Promise<string> {
  if (environmentProblem(window)) return "";
  try {
    await call.start({ withMicrophone: false });
  } catch (error) {
    if (error instanceof CallError) return error.problem.kind;
  }
  off();
  return call.transcript.entries.map(({ text }) => text).join();
}
