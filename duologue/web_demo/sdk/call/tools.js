/**
 * Functions of the page that the model may call: runs them, hands back what they return, and asks
 * for the answer once all of a response have returned. Knows the wire by one port; knows no DOM.
 */

/** @typedef {import("../wire/line.js").RealtimeEvent} RealtimeEvent */

/**
 * @typedef {object} Tool
 * @property {string} description what it does and when to call it, for the model
 * @property {object} [parameters] JSON schema of its one argument, an object
 * @property {(args: any, context: { signal: AbortSignal, callId: string }) => unknown} run returns
 *   what the model is told, or a promise of it
 * @property {number} [timeout_s]
 */

/** @typedef {{ name: string, callId: string, output: string, isError: boolean }} ToolResult */

const TIMEOUT_S = 30;
const NO_PARAMETERS = { type: "object", properties: {} };

export class Tools {
  #tools;
  #send;
  /** Calls that run, by response. @type {Map<string, number>} */
  #running = new Map();
  #isAnswerDue = false;
  #active = "";
  #end = new AbortController();

  /** @type {(result: ToolResult) => void} */
  onResult = () => {};

  /**
   * @param {{ [name: string]: Tool }} tools
   * @param {(event: RealtimeEvent) => void} send
   */
  constructor(tools, send) {
    this.#tools = tools;
    this.#send = send;
  }

  /** @returns {object[]} for the session */
  describe() {
    return Object.entries(this.#tools).map(([name, { description, parameters = NO_PARAMETERS }]) => ({
      type: "function",
      name,
      description,
      parameters,
    }));
  }

  /** @param {RealtimeEvent} event from the server */
  receive({ type, response, response_id, item }) {
    if (type === "response.created") this.#active = response.id;
    else if (type === "response.output_item.done") {
      const isCall = item.type === "function_call" && item.status === "completed";
      if (isCall && Object.hasOwn(this.#tools, item.name)) void this.#call(response_id, item);
    } else if (type === "response.done") {
      if (this.#active === response.id) this.#active = "";
      this.#answer();
    }
  }

  /** The call is over: what still runs is told so, and what it returns is dropped. */
  end() {
    this.#end.abort();
  }

  /**
   * @param {string} responseId
   * @param {{ name: string, call_id: string, arguments: string }} call
   */
  async #call(responseId, { name, call_id: callId, arguments: text }) {
    this.#running.set(responseId, (this.#running.get(responseId) ?? 0) + 1);
    const { output, isError } = await this.#run(name, callId, text);
    if (this.#end.signal.aborted) return;
    this.#send({
      type: "conversation.item.create",
      item: { type: "function_call_output", call_id: callId, output },
    });
    this.onResult({ name, callId, output, isError });
    const left = (this.#running.get(responseId) ?? 1) - 1;
    if (left > 0) {
      this.#running.set(responseId, left);
      return;
    }
    this.#running.delete(responseId);
    this.#isAnswerDue = true;
    this.#answer();
  }

  /**
   * @param {string} name
   * @param {string} callId
   * @param {string} text arguments as JSON
   */
  async #run(name, callId, text) {
    const { run, timeout_s = TIMEOUT_S } = this.#tools[name];
    const stop = new AbortController();
    const { signal } = stop;
    const halt = () => stop.abort();
    this.#end.signal.addEventListener("abort", halt);
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let timer;
    try {
      const args = JSON.parse(text || "{}");
      const stopped = new Promise((_, reject) => {
        signal.onabort = () => reject(new Error(`${name} took longer than ${timeout_s} s`));
        timer = setTimeout(halt, 1000 * timeout_s);
      });
      const result = await Promise.race([(async () => run(args, { signal, callId }))(), stopped]);
      const output = typeof result === "string" ? result : JSON.stringify(result ?? null);
      return { output, isError: false };
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      return { output: JSON.stringify({ error: message }), isError: true };
    } finally {
      clearTimeout(timer);
      this.#end.signal.removeEventListener("abort", halt);
    }
  }

  /** One answer to all that was returned, as soon as nobody else is answering. */
  #answer() {
    if (!this.#isAnswerDue || this.#active || this.#running.size > 0) return;
    this.#isAnswerDue = false;
    this.#send({ type: "response.create" });
  }
}
