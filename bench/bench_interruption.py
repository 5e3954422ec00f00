"""Talking over the answer: how soon after the confirmation does the old audio stop?

One call. A question is asked; while its answer plays, the next question is asked over it, and so
on, so that every answer is interrupted by real speech. Counted from the arrival of
`input_audio_buffer.speech_started` (the confirmation) to the last delta of the old answer. The
same caller does the same with a bare event loop that only knows loudness; what it takes there is
the measurement's own share, and is subtracted.
"""

import argparse
import asyncio
import itertools
import statistics
from collections.abc import Sequence
from typing import Any

from call import SAMPLE_RATE_HZ, Answer, Call, open_call
from interruption_picture import draw
from priority import add_urgent_option, check_urgent, go_first
from report import Report, Row, print_table
from scoring import Question, load_questions
from servers import Running, bare_call, duologue, running
from speech import at_rate, speech_start_s

OURS, CONTROL = "duologue", "bare loop"
LONG_ANSWERS = ("book", "dinner", "egg", "tired", "sleep", "language", "joke")
"""Questions whose answers last long enough to be talked over."""

TALK_OVER_AFTER_S = 0.3
ANSWER_LIMIT_S = 30.0
CONFIRM_LIMIT_S = 5.0
SETTLE_S = 1.0
"""How long after the confirmation late audio of the old answer is looked for."""


def main() -> None:
    args = _arguments()
    if check_urgent(args.urgent):
        go_first()
    report = Report(
        "bench_interruption",
        f"time from the confirmed interruption to the last old audio, {args.interruptions} times, "
        "Duologue on its embedded models beside a bare event loop in one run",
    )
    questions = [question for question in load_questions() if question.id in LONG_ANSWERS]
    servers = [bare_call(answer_s=8.0)] if args.stub else [bare_call(answer_s=8.0), duologue()]
    for server in servers:
        with running(server, ttl_s=3600, urgent=args.urgent) as at:
            for row in asyncio.run(_interrupt(at, questions, args.interruptions)):
                report.add({"system": server.name, **row})
        own = [row for row in report.rows if row["system"] == server.name]
        print(f"{server.name}: {len(own)} interruptions")
    summaries = [summary(report.rows, server.name) for server in servers]
    print_table(summaries)
    draw(report.rows, report.picture)
    report.finish(figures(summaries))


def summary(rows: Sequence[Row], system: str) -> Row:
    own = [row for row in rows if row["system"] == system]
    running_then = [row for row in own if row["was_generating"]]
    stops = [row["stop_ms"] for row in own]
    return {
        "system": system,
        "interruptions": len(own),
        "while_generating": len(running_then),
        "stop_median_ms": statistics.median(stops) if stops else None,
        "stop_p99_ms": _p99(stops),
        "stop_max_ms": max(stops, default=None),
        "deltas_after_done": sum(row["deltas_after_done"] for row in own),
        "confirmed_median_ms": _median(own, "confirmed_ms"),
        "confirmed_p99_ms": _p99([row["confirmed_ms"] for row in own]),
        "cancelled": sum(row["status"] == "cancelled" for row in own),
    }


def figures(summaries: Sequence[Row]) -> dict[str, Any]:
    """The RESULT line; the control comes first, the measured system last."""
    control, measured = summaries[0], summaries[-1]

    def beyond_control(key: str) -> float | None:
        if measured[key] is None or control[key] is None:
            return None
        return float(max(0.0, measured[key] - control[key]))

    stated = {
        "interruptions": measured["interruptions"],
        "while_generating": measured["while_generating"],
        "stop_median_ms": beyond_control("stop_median_ms"),
        "stop_p99_ms": beyond_control("stop_p99_ms"),
        "stop_median_raw_ms": measured["stop_median_ms"],
        "stop_p99_raw_ms": measured["stop_p99_ms"],
        "control_median_ms": control["stop_median_ms"],
        "control_p99_ms": control["stop_p99_ms"],
        "deltas_after_done": measured["deltas_after_done"],
        "confirmed_median_ms": measured["confirmed_median_ms"],
    }
    return {k: round(v, 3) if isinstance(v, float) else v for k, v in stated.items()}


async def _interrupt(server: Running, questions: Sequence[Question], wanted: int) -> list[Row]:
    """Hold the call until so many answers were talked over, or three in a row failed."""
    cycle = itertools.cycle(
        [(question.id, at_rate(*question.audio(), SAMPLE_RATE_HZ)) for question in questions]
    )
    rows: list[Row] = []
    misses = 0
    async with open_call(server.url) as call:

        def ask() -> tuple[str, float]:
            name, clip = next(cycle)
            return name, call.say(clip) + speech_start_s(clip, SAMPLE_RATE_HZ)

        await asyncio.sleep(0.5)
        name, asked_s = ask()
        while len(rows) < wanted and misses < 3 and not call.closed:
            answer = await _next_answer(call, asked_s)
            if answer is None:
                misses += 1
                print(f"{server.server.name}: no answer to {name!r}", flush=True)
                name, asked_s = ask()
                continue
            await asyncio.sleep(TALK_OVER_AFTER_S)
            name, asked_s = ask()
            row = await _stopped(call, answer, asked_s)
            misses = 0 if row is not None else misses + 1
            if row is not None:
                rows.append({"interruption": len(rows), "by": name, **row})
    return rows


async def _next_answer(call: Call, asked_s: float) -> Answer | None:
    """The first answer with audio that began after the question did."""

    def found() -> Answer | None:
        later = (a for a in call.answers.values() if a.created_s > asked_s and a.deltas)
        return next(later, None)

    await call.wait_until(lambda: found() is not None, ANSWER_LIMIT_S)
    return found()


async def _stopped(call: Call, answer: Answer, said_s: float) -> Row | None:
    """What became of an answer after speech over it began at `said_s`; None: nothing did."""
    started = "input_audio_buffer.speech_started"
    await call.wait_until(lambda: bool(call.since(said_s, started)), CONFIRM_LIMIT_S)
    confirmations = call.since(said_s, started)
    if not confirmations:
        return None
    confirmed_s = confirmations[0].at_s
    await asyncio.sleep(SETTLE_S)
    last_s = max(at_s for at_s, _ in answer.deltas)
    done_s = answer.done_s
    return {
        "confirmed_ms": (confirmed_s - said_s) * 1e3,
        "stop_ms": max(0.0, last_s - confirmed_s) * 1e3,
        "was_generating": done_s is None or done_s >= confirmed_s,
        "deltas_after_confirmation": sum(at_s > confirmed_s for at_s, _ in answer.deltas),
        "deltas_after_done": sum(done_s is not None and at_s > done_s for at_s, _ in answer.deltas),
        "status": answer.status,
        "received_s": answer.audio_s,
    }


def _median(rows: Sequence[Row], key: str) -> float | None:
    return statistics.median([row[key] for row in rows]) if rows else None


def _p99(values: Sequence[float]) -> float | None:
    if len(values) < 2:
        return None
    return statistics.quantiles(values, n=100, method="inclusive")[-1]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--interruptions", type=int, default=60)
    parser.add_argument("--stub", action="store_true", help="the bare control alone")
    add_urgent_option(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
