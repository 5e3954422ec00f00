/**
 * A made-up call for the page before the first one: a picture of what the timeline will show.
 */

import { LEVEL_MS } from "../sdk/call/answer.js";
import { Timeline } from "../sdk/call/timeline.js";

export const ILLUSTRATION_NOW_MS = 20_000;

/**
 * @returns {{ timeline: Timeline, upcoming: number[] }} as it stands at ILLUSTRATION_NOW_MS
 */
export function illustration() {
  const timeline = new Timeline();
  speak(timeline, "you", 8_300, 10_400);
  timeline.wait(10_400);
  timeline.answer(11_300);
  speak(timeline, "duologue", 11_300, 15_300);
  speak(timeline, "you", 15_000, 16_700);
  timeline.cut(15_300, syllables(15_300, 17_500));
  timeline.wait(16_700);
  timeline.answer(17_550);
  speak(timeline, "duologue", 17_550, ILLUSTRATION_NOW_MS);
  return { timeline, upcoming: syllables(ILLUSTRATION_NOW_MS, 22_400) };
}

/**
 * @param {Timeline} timeline
 * @param {import("../sdk/call/timeline.js").Lane} lane
 * @param {number} from_ms
 * @param {number} to_ms
 */
function speak(timeline, lane, from_ms, to_ms) {
  timeline.startTurn(lane, from_ms);
  for (const [index, level] of syllables(from_ms, to_ms).entries()) {
    timeline.level(lane, from_ms + index * LEVEL_MS, level);
  }
  timeline.endTurn(lane, to_ms);
}

/**
 * @param {number} from_ms
 * @param {number} to_ms
 * @returns {number[]} loudness that rises and falls about as speech does
 */
function syllables(from_ms, to_ms) {
  return Array.from({ length: (to_ms - from_ms) / LEVEL_MS }, (_, index) => {
    const t = (from_ms + index * LEVEL_MS) / 1000;
    const syllable = Math.abs(Math.sin(t * 8.3) * Math.sin(t * 5.1 + 1));
    const phrase = 0.65 + 0.35 * Math.sin(t * 1.7 + 0.5);
    return 0.12 + 0.8 * syllable * phrase;
  });
}
