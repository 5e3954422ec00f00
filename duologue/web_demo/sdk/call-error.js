/** The error that a program gets where a call does not come about. */

import { keyProblem } from "./wire/problems.js";

/** @typedef {import("./wire/problems.js").Problem} Problem */

/** A call that did not come about; `problem` says why and what to do. */
export class CallError extends Error {
  /** @param {Problem} problem */
  constructor(problem) {
    super([`${problem.title}.`, problem.text, ...problem.steps].join(" "));
    this.name = "CallError";
    this.problem = problem;
  }
}

/**
 * @param {unknown} error of whoever was asked for a key
 * @returns {Problem}
 */
export function problemOfKey(error) {
  if (error instanceof CallError) return error.problem;
  return keyProblem(error instanceof Error ? error.message : String(error));
}
