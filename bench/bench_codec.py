"""What one audio message costs to read and to write as JSON, beside the standard library.

An append and an audio delta of 40 ms at 24 kHz, in the forms that occur: tidy (as our own client
and most others write it), with spaces and an ``event_id`` (as Python's ``json`` writes it), and
the client's side of both. Compared, interleaved: the codec, and ``json`` with ``base64``.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import statistics
import sys
import timeit
from collections.abc import Callable
from pathlib import Path

import matplotlib

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.report import Report, print_table
from duologue.protocol.append_audio import AppendAudio
from duologue.protocol.json_codec import (
    decode_command,
    decode_event,
    encode_command,
    encode_event,
)
from duologue.protocol.response_events import AudioDelta

CALLS = 5_000
PCM = os.urandom(24_000 * 2 * 40 // 1000)
PLACE = {
    "response_id": "resp_0123456789abcdefghij",
    "item_id": "item_0123456789abcdefghij",
    "output_index": 0,
    "content_index": 0,
}
DELTA = AudioDelta(**PLACE, delta=PCM)
APPEND = AppendAudio(audio=PCM)


def plain_append(**fields: str) -> dict[str, str]:
    audio = base64.b64encode(PCM).decode()
    return {**fields, "type": "input_audio_buffer.append", "audio": audio}


def plain_delta() -> dict[str, object]:
    delta = base64.b64encode(PCM).decode()
    return {"event_id": "event_7", "type": "response.output_audio.delta", **PLACE, "delta": delta}


def plain_decode(message: bytes, key: str) -> bytes:
    return base64.b64decode(json.loads(message)[key], validate=True)


TIDY = encode_command(APPEND)
SPACED = json.dumps(plain_append(event_id="event_123")).encode()
WRITTEN = encode_event(DELTA, 7)

CASES: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
    "read an append": (lambda: decode_command(TIDY), lambda: plain_decode(TIDY, "audio")),
    "read an append, spaced": (
        lambda: decode_command(SPACED),
        lambda: plain_decode(SPACED, "audio"),
    ),
    "write a delta": (
        lambda: encode_event(DELTA, 7),
        lambda: json.dumps(plain_delta()).encode(),
    ),
    "write an append": (
        lambda: encode_command(APPEND),
        lambda: json.dumps(plain_append()).encode(),
    ),
    "read a delta": (lambda: decode_event(WRITTEN), lambda: plain_decode(WRITTEN, "delta")),
}


def check() -> None:
    """Both sides do the same work, or the figures mean nothing."""
    assert plain_decode(TIDY, "audio") == decode_command(SPACED).audio == PCM  # type: ignore[union-attr]
    assert decode_event(json.dumps(plain_delta())) == (DELTA, "event_7")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=21)
    rounds = parser.parse_args().rounds
    check()
    report = Report("codec", "our JSON codec against json + base64, one audio message of 40 ms")
    taken: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in CASES}
    for _ in range(rounds):
        for name, pair in CASES.items():
            for times, call in zip(taken[name], pair, strict=True):
                times.append(timeit.timeit(call, number=CALLS) / CALLS * 1e6)
    figures: dict[str, float] = {}
    for name, (ours, plain) in taken.items():
        ratio = statistics.median(a / b for a, b in zip(ours, plain, strict=True))
        row = {
            "case": name,
            "ours_us": min(ours),
            "ours_median_us": statistics.median(ours),
            "plain_us": min(plain),
            "ratio": ratio,
        }
        report.add(row)
        key = name.replace(",", "").replace(" ", "_")
        figures |= {f"{key}_us": round(min(ours), 2), f"{key}_ratio": round(ratio, 3)}
    print_table(report.rows)
    draw(report)
    report.finish(figures)


def draw(report: Report) -> None:
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 3.5), layout="constrained")
    places = range(len(report.rows))
    axes.barh([p + 0.2 for p in places], [r["plain_us"] for r in report.rows], 0.4)
    axes.barh([p - 0.2 for p in places], [r["ours_us"] for r in report.rows], 0.4)
    axes.set_yticks(list(places), [r["case"] for r in report.rows])
    axes.set_xlabel("microseconds a message, best of all rounds")
    axes.legend(["json + base64", "duologue"])
    figure.savefig(report.picture, dpi=110)


if __name__ == "__main__":
    main()
