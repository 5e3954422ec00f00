"""Voice to voice: from the end of a spoken question to the first audible sample of the answer.

Each question of the published set is asked twice in a row, once of Duologue over a WebSocket call,
once of the baseline chain (the same models called one after the other, see baseline_chain.py); who
goes first alternates. Both hear the question in real time, each in a conversation of its own.
"""

import argparse
import asyncio
import statistics
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import process_tree
import soundfile
from baseline import Baseline, baseline
from cache import models_folder
from call import SAMPLE_RATE_HZ, Answer, Call, open_call
from latency_picture import draw
from priority import add_urgent_option, check_urgent, go_first
from report import RESULTS, Report, Row, print_table
from scoring import Question, incoherence, is_correct, load_questions, word_errors
from servers import Running, bare_call, duologue, running
from speech import at_rate, speech_end_s

OURS, BASELINE = "duologue", "baseline"
STEPS = (
    "end_of_turn_s",
    "recognised_s",
    "first_token_s",
    "first_clause_s",
    "first_audio_s",
    "first_audible_s",
)
"""Moments of a turn, counted from the end of speech. Over the wire some cannot be seen."""

LEAD_S = 0.5
ANSWER_LIMIT_S = 30.0
SESSION = {
    "type": "realtime",
    "audio": {"input": {"transcription": {"model": "default"}}},
}


def main() -> None:
    args = _arguments()
    if check_urgent(args.urgent):
        go_first()
    questions = load_questions()[: args.questions]
    report = Report(
        "bench_latency",
        f"voice-to-voice time of {len(questions)} questions, Duologue and the baseline chain "
        "interleaved question by question in one run, both on the embedded models",
    )
    answers = RESULTS / "answers"
    answers.mkdir(parents=True, exist_ok=True)
    server = bare_call(answer_s=2.0) if args.stub else duologue()
    with (
        baseline(args.models, urgent=args.urgent) as chain,
        running(server, ttl_s=3600, urgent=args.urgent) as at,
    ):
        # The first call pays for what a server loads late; a person's tenth call does not.
        ask_ours(at, questions[0], answers / "warm.wav")
        for number, question in enumerate(questions):
            turns = [
                partial(ask_ours, at, question, answers / f"{OURS}-{question.id}.wav"),
                partial(ask_baseline, chain, question, answers / f"{BASELINE}-{question.id}.wav"),
            ]
            for turn in turns if number % 2 == 0 else turns[::-1]:
                row = turn()
                report.add(row)
                print(_line(row), flush=True)
        for row in report.rows:
            row |= _recognised_back(chain, row, answers)
    summaries = [summary(report.rows, name) for name in (OURS, BASELINE)]
    print("\nmedians in seconds from the end of speech")
    print_table(summaries)
    draw(report.rows, summaries, STEPS, report.picture)
    report.finish(figures(report.rows, summaries))


def ask_ours(server: Running, question: Question, path: Path) -> Row:
    """Ask over a fresh call; the answer's audio goes to `path`."""
    before_s = process_tree.cpu_s(server.pid)
    row = asyncio.run(_hold_call(server.url, question, path))
    row["cpu_s"] = process_tree.cpu_s(server.pid) - before_s
    return _judged({"system": OURS, **row}, question)


def ask_baseline(chain: Baseline, question: Question, path: Path) -> Row:
    before_s = process_tree.cpu_s(chain.pid)
    row = chain.turn(question.audio_path, path)
    row["cpu_s"] = process_tree.cpu_s(chain.pid) - before_s
    return _judged({"system": BASELINE, **row}, question)


def summary(rows: Sequence[Row], system: str) -> Row:
    """Medians of one system over the questions."""
    own = [row for row in rows if row["system"] == system]
    line: Row = {"system": system}
    line |= {step: _median(own, step) for step in STEPS}
    line |= {
        "p90_s": _percentile_90(own, "first_audible_s"),
        "gap_p90_s": _percentile_90(own, "gap_s"),
        "cpu_s": _median(own, "cpu_s"),
        "answered": sum(row["first_audible_s"] is not None for row in own),
        "coherent": sum(row["incoherence"] is None for row in own),
        "correct": sum(row["correct"] for row in own),
        "wer": _error_rate(own),
    }
    return line


def figures(rows: Sequence[Row], summaries: Sequence[Row]) -> dict[str, Any]:
    """The RESULT line."""
    ours, base = summaries
    stated = {
        "questions": len(rows) // 2,
        "answered": ours["answered"],
        "v2v_median_s": ours["first_audible_s"],
        "v2v_p90_s": ours["p90_s"],
        "first_audio_median_s": ours["first_audio_s"],
        "ratio_to_baseline": _ratio(ours["first_audible_s"], base["first_audible_s"]),
        "first_audio_ratio_to_baseline": _ratio(ours["first_audio_s"], base["first_audio_s"]),
        "baseline_median_s": base["first_audible_s"],
        "baseline_p90_s": base["p90_s"],
        "baseline_first_audio_median_s": base["first_audio_s"],
        "gap_p90_s": ours["gap_p90_s"],
        "cpu_s_per_turn": ours["cpu_s"],
        "baseline_cpu_s_per_turn": base["cpu_s"],
        "coherent": ours["coherent"],
        "correct": ours["correct"],
        "baseline_coherent": base["coherent"],
        "baseline_correct": base["correct"],
        "wer": ours["wer"],
    }
    return {k: round(v, 4) if isinstance(v, float) else v for k, v in stated.items()}


async def _hold_call(url: str, question: Question, path: Path) -> Row:
    audio = at_rate(*question.audio(), SAMPLE_RATE_HZ)
    async with open_call(url, SESSION) as call:
        await asyncio.sleep(LEAD_S)
        said_s = call.say(audio)
        end_s = said_s + speech_end_s(audio, SAMPLE_RATE_HZ)
        await call.wait_until(lambda: _is_complete(call), end_s - said_s + ANSWER_LIMIT_S)
        answer = _first_spoken(call)
        if answer is not None:
            soundfile.write(path, answer.audio, SAMPLE_RATE_HZ)
        return _moments(call, answer, said_s, end_s)


def _is_complete(call: Call) -> bool:
    answer = _first_spoken(call)
    return answer is not None and answer.done_s is not None


def _first_spoken(call: Call) -> Answer | None:
    return next((answer for answer in call.answers.values() if answer.deltas), None)


def _moments(call: Call, answer: Answer | None, said_s: float, end_s: float) -> Row:
    def after_end(at_s: float | None) -> float | None:
        return None if at_s is None else at_s - end_s

    def first(event_type: str) -> float | None:
        found = call.since(said_s, event_type)
        return found[0].at_s if found else None

    transcripts = call.since(said_s, "conversation.item.input_audio_transcription.completed")
    return {
        "heard": " ".join(arrival.event["transcript"].strip() for arrival in transcripts),
        "reply": answer.text.strip() if answer else "",
        "end_of_turn_s": after_end(first("input_audio_buffer.committed")),
        "recognised_s": after_end(transcripts[0].at_s if transcripts else None),
        "first_token_s": after_end(answer.first_text_s if answer else None),
        "first_clause_s": None,
        "first_audio_s": after_end(answer.first_audio_s if answer else None),
        "first_audible_s": after_end(answer.first_audible_s() if answer else None),
        "audio_s": answer.audio_s if answer else 0.0,
        "gap_s": _gap_s(answer) if answer else None,
        "responses": len(call.answers),
        "status": answer.status if answer else "none",
    }


def _gap_s(answer: Answer) -> float:
    """How long a loudspeaker that plays at once has nothing to play before the answer is over."""
    assert answer.first_audio_s is not None
    return max(0.0, answer.playback_end_s() - answer.first_audio_s - answer.audio_s)


def _judged(row: Row, question: Question) -> Row:
    reply = str(row["reply"])
    return {
        **row,
        "question": question.id,
        "correct": is_correct(question, reply),
        "incoherence": incoherence(question, reply),
    }


def _recognised_back(chain: Baseline, row: Row, answers: Path) -> Row:
    """How well the recogniser understands the answer's own audio."""
    path = answers / f"{row['system']}-{row['question']}.wav"
    if row["first_audible_s"] is None or not path.exists():
        return {"heard_back": "", "word_errors": 0, "words": 0}
    heard = chain.transcribe(path)
    errors, words = word_errors(str(row["reply"]), heard)
    return {"heard_back": heard, "word_errors": errors, "words": words}


def _line(row: Row) -> str:
    audible = row["first_audible_s"]
    time = "no answer" if audible is None else f"{audible:.2f} s"
    notes = ["correct" if row["correct"] else "WRONG"]
    if row["incoherence"]:
        notes.append(f"INCOHERENT ({row['incoherence']})")
    return f"{row['system']:9} {time:>9}  {row['heard']!r} -> {row['reply']!r}  {', '.join(notes)}"


def _values(rows: Sequence[Row], key: str) -> list[float]:
    return [float(row[key]) for row in rows if row.get(key) is not None]


def _median(rows: Sequence[Row], key: str) -> float | None:
    values = _values(rows, key)
    return statistics.median(values) if values else None


def _percentile_90(rows: Sequence[Row], key: str) -> float | None:
    values = _values(rows, key)
    return statistics.quantiles(values, n=10, method="inclusive")[-1] if len(values) > 1 else None


def _error_rate(rows: Sequence[Row]) -> float | None:
    words = sum(row["words"] for row in rows)
    return sum(row["word_errors"] for row in rows) / words if words else None


def _ratio(above: float | None, below: float | None) -> float | None:
    return above / below if above is not None and below else None


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=20, help="ask only the first so many")
    parser.add_argument("--models", type=Path, default=models_folder(), help="the models' folder")
    parser.add_argument(
        "--stub", action="store_true", help="ask the bare control instead of Duologue"
    )
    add_urgent_option(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
