"""A calm call: each question waits until the last answer was played. Every one is answered once.

One call, the published questions in turn. A turn is good when exactly one answer was completed
and heard to its end, and no sound of another was; a second answer, a cut one or none at all is a
fault. A response that was begun at a pause in the question and withdrawn before any sound of it
is heard by nobody: it is counted by itself.
"""

import argparse
import asyncio
import itertools
import time
from collections.abc import Sequence
from typing import Any

import matplotlib

matplotlib.use("Agg")

from call import SAMPLE_RATE_HZ, Call, open_call
from matplotlib import pyplot
from priority import add_urgent_option, check_urgent, go_first
from report import Report, Row
from scoring import Question, load_questions
from servers import Running, bare_call, duologue, running
from speech import at_rate, speech_end_s

ANSWER_LIMIT_S = 40.0
REST_S = 0.8
"""Silence between the end of an answer's playback and the next question."""

GOOD = "answered once"


def main() -> None:
    args = _arguments()
    if check_urgent(args.urgent):
        go_first()
    report = Report("bench_calm_turns", f"{args.turns} turns without interruption in one call")
    server = bare_call(answer_s=1.5) if args.stub else duologue()
    with running(server, ttl_s=3600, urgent=args.urgent) as at:
        for row in asyncio.run(_hold(at, load_questions(), args.turns)):
            report.add(row)
    _draw(report)
    report.finish(figures(report.rows, args.turns))


def figures(rows: Sequence[Row], wanted: int) -> dict[str, Any]:
    return {
        "turns": wanted,
        "answers": sum(row["outcome"] == GOOD for row in rows),
        "unanswered": wanted - sum(row["completed"] > 0 for row in rows),
        "cut": sum(row["cut"] for row in rows),
        "withdrawn_unheard": sum(row["withdrawn"] for row in rows),
        "extra_responses": sum(max(0, row["responses"] - row["withdrawn"] - 1) for row in rows),
        "speech_starts": sum(row["speech_starts"] for row in rows),
    }


async def _hold(server: Running, questions: Sequence[Question], turns: int) -> list[Row]:
    rows: list[Row] = []
    async with open_call(server.url) as call:
        await asyncio.sleep(0.5)
        for number, question in enumerate(itertools.islice(itertools.cycle(questions), turns)):
            row = {"turn": number, "question": question.id, **await _take_turn(call, question)}
            rows.append(row)
            print(f"{number + 1:3} {question.id:9} {row['outcome']}: {row['reply']}", flush=True)
            if call.closed:
                break
    return rows


async def _take_turn(call: Call, question: Question) -> Row:
    audio = at_rate(*question.audio(), SAMPLE_RATE_HZ)
    asked_s = call.say(audio)
    end_s = asked_s + speech_end_s(audio, SAMPLE_RATE_HZ)

    def answers() -> list[Any]:
        return [answer for answer in call.answers.values() if answer.created_s > asked_s]

    def over() -> bool:
        """Everything that was begun is done, and one has an answer.

        One that was begun at a pause in the question is withdrawn, and another one follows.
        """
        done = all(answer.done_s is not None for answer in answers())
        return done and any(answer.status == "completed" for answer in answers())

    await call.wait_until(over, end_s - time.monotonic() + ANSWER_LIMIT_S)
    playback_end_s = max((answer.playback_end_s() for answer in answers()), default=0.0)
    await asyncio.sleep(max(0.0, playback_end_s - time.monotonic()) + REST_S)
    completed = sum(answer.status == "completed" and answer.audio_s > 0 for answer in answers())
    cancelled = [answer for answer in answers() if answer.status == "cancelled"]
    withdrawn = sum(answer.audio_s == 0 for answer in cancelled)
    first_audio = [a.first_audio_s for a in answers() if a.first_audio_s is not None]
    return {
        "outcome": _outcome(completed, len(answers()) - withdrawn),
        "completed": completed,
        "responses": len(answers()),
        "withdrawn": withdrawn,
        "cut": len(cancelled) - withdrawn,
        "speech_starts": len(call.since(asked_s, "input_audio_buffer.speech_started")),
        "first_audio_s": min(first_audio) - end_s if first_audio else None,
        "audio_s": sum(answer.audio_s for answer in answers()),
        "reply": " | ".join(answer.text.strip() for answer in answers() if answer.deltas),
    }


def _outcome(completed: int, responses: int) -> str:
    if completed == responses == 1:
        return GOOD
    return "no answer" if completed == 0 else f"{completed} completed of {responses} responses"


def _draw(report: Report) -> None:
    figure, axes = pyplot.subplots(figsize=(10, 3.6), layout="constrained")
    for good, color in ((True, "C0"), (False, "C3")):
        rows = [row for row in report.rows if (row["outcome"] == GOOD) == good]
        label = GOOD if good else "fault"
        times = [row["first_audio_s"] or 0.0 for row in rows]
        axes.plot([row["turn"] + 1 for row in rows], times, "o", color=color, label=label)
    axes.set(xlabel="turn of the call", ylabel="first audio, s after the end of speech")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(report.picture, dpi=130)
    pyplot.close(figure)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=50)
    parser.add_argument("--stub", action="store_true", help="call the bare control instead")
    add_urgent_option(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
