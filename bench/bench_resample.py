"""What the streaming resampler costs, and how much audio it keeps back, beside soxr.

Live audio in messages of 20 ms. What a resampler keeps back is delay that a person hears. Compared,
interleaved: ours, and soxr's HQ and QQ streams (with 16-bit samples, as it is commonly used).
"""

from __future__ import annotations

import argparse
import functools
import statistics
import sys
import timeit
from collections.abc import Callable
from pathlib import Path

import matplotlib
import numpy as np
import soxr

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.report import Report, print_table
from duologue.codecs.resample import StreamResampler

PAIRS = [(24000, 16000), (48000, 16000), (8000, 16000), (8000, 24000), (24000, 8000)]
CALLS = 500
MESSAGES_PER_S = 50


def streams(from_hz: int, to_hz: int) -> dict[str, Callable[[bytes], bytes]]:
    def of_soxr(quality: str) -> Callable[[bytes], bytes]:
        stream = soxr.ResampleStream(from_hz, to_hz, 1, dtype="int16", quality=quality)
        return lambda pcm: stream.resample_chunk(np.frombuffer(pcm, "<i2")).tobytes()

    return {
        "ours": StreamResampler(from_hz, to_hz).process,
        "soxr HQ": of_soxr("HQ"),
        "soxr QQ": of_soxr("QQ"),
    }


def worst_kept_back_ms(process: Callable[[bytes], bytes], message: bytes, to_hz: int) -> float:
    worst, out = 0.0, 0
    for number in range(1, 10 * MESSAGES_PER_S):
        out += len(process(message)) // 2
        worst = max(worst, number * 1000 / MESSAGES_PER_S - out * 1000 / to_hz)
    return worst


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=11)
    rounds = parser.parse_args().rounds
    report = Report("resample", "our streaming resampler against soxr, messages of 20 ms")
    figures: dict[str, float] = {}
    for from_hz, to_hz in PAIRS:
        noise = np.random.default_rng(1).normal(0, 3000, from_hz // MESSAGES_PER_S)
        message = noise.astype("<i2").tobytes()
        taken: dict[str, list[float]] = {}
        for _ in range(rounds):
            for name, process in streams(from_hz, to_hz).items():
                run = functools.partial(process, message)
                taken.setdefault(name, []).append(timeit.timeit(run, number=CALLS) / CALLS * 1e6)
        for name, process in streams(from_hz, to_hz).items():
            report.add(
                {
                    "from_hz": from_hz,
                    "to_hz": to_hz,
                    "resampler": name,
                    "us": min(taken[name]),
                    "median_us": statistics.median(taken[name]),
                    "kept_back_ms": worst_kept_back_ms(process, message, to_hz),
                }
            )
        ours, theirs = report.rows[-3], report.rows[-2]
        pair = f"{from_hz // 1000}k_{to_hz // 1000}k"
        figures |= {
            f"{pair}_us": round(ours["us"], 1),
            f"{pair}_ratio_to_soxr_hq": round(ours["us"] / theirs["us"], 2),
            f"{pair}_kept_back_ms": round(ours["kept_back_ms"], 2),
            f"{pair}_soxr_hq_kept_back_ms": round(theirs["kept_back_ms"], 2),
        }
    print_table(report.rows)
    draw(report)
    report.finish(figures)


def draw(report: Report) -> None:
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
    pairs = [f"{a // 1000}k to {b // 1000}k" for a, b in PAIRS]
    for axes, key, title in (
        (panels[0], "us", "microseconds a message of 20 ms"),
        (panels[1], "kept_back_ms", "audio kept back, ms"),
    ):
        for place, name in enumerate(("ours", "soxr HQ", "soxr QQ")):
            values = [row[key] for row in report.rows if row["resampler"] == name]
            axes.barh([p + 0.27 * (1 - place) for p in range(len(pairs))], values, 0.27, label=name)
        axes.set_yticks(range(len(pairs)), pairs)
        axes.set_xlabel(title)
    panels[1].legend()
    figure.savefig(report.picture, dpi=110)


if __name__ == "__main__":
    main()
