"""``duologue models check``: what the narrow modes change on the weights of this machine."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.table import Table

from duologue.artifacts.references import resolve_references
from duologue.artifacts.settings import ArtifactSettings
from duologue.artifacts.store import Store
from duologue.clients.playback import RATE_HZ
from duologue.codecs.pcm import pcm_to_float
from duologue.core.audio import SAMPLE_BYTES
from duologue.core.errors import ConfigError
from duologue.core.installation import install_command
from duologue.engines.payloads import LockstepStart
from duologue.engines.pipeline import BUILT_IN_FOLDER, load_pipelines

if TYPE_CHECKING:
    from duologue.engines.runners.streaming_lm.comparison import Comparison, Likeness

ACTION = "check"
RUNNER = "streaming_lm"
QUESTION = Path(__file__).parents[1] / "assets" / "questions" / "green.flac"
RANDOM = "moshi-tiny"
"""The one network whose weights are always noise."""

LONGEST_S = 60
HEADINGS = (
    "mode",
    "text equal",
    "first code equal",
    "all codes equal",
    "text KL",
    "text KL, p99",
    "codes KL",
    "heard equal",
    "codec SNR",
)


def register(actions: Any) -> None:
    """Add ``check`` to the actions of ``models``."""
    check = actions.add_parser(
        ACTION, help="compare the narrow modes of a lockstep model with bf16", description=__doc__
    )
    check.add_argument("pipeline", metavar="PIPELINE", help="a name, as personaplex, or a file")
    check.add_argument(
        "--device", help="where it runs, as cuda:0 or cpu; else as the pipeline says"
    )
    check.add_argument("--voice", default="", help="one of the model's; else the pipeline's")
    check.add_argument("--instructions", default="", help="the persona")
    check.add_argument(
        "--wav",
        type=Path,
        default=QUESTION,
        help="a recording of a person; else a bundled question",
    )


def run(
    args: argparse.Namespace, settings: ArtifactSettings, console: Console | None = None
) -> int:
    """Compare, and print a table; returns 0 whatever the figures are.

    Raises:
        ConfigError: There is no such pipeline, it runs no such model, or files are missing.
    """
    console = console or Console()
    raw = _runner_settings(args.pipeline, args.device, settings)
    try:
        comparison = _compare(raw, args, console)
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"this needs the package {error.name!r}, which is not installed. Get it with:"
            f" {install_command('duologue[local,torch]')}"
        ) from error
    console.print(_table(comparison))
    for line in verdict(comparison, args.wav.name, is_random=raw.get("network") == RANDOM):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    return 0


def verdict(found: Comparison, recording: str, *, is_random: bool) -> list[str]:
    """Say what the figures are, and what they are not."""
    lines = [
        f"Judged at {found.frames} frames of a call with {recording}, against {found.wide}: both"
        " read the same tokens, and the table says how far what they expect next lies apart.",
        *(_in_words(each) for each in found.modes),
    ]
    if is_random:
        return [
            *lines,
            "These weights are random, so this shows that the machinery works and nothing else: no"
            " evidence of quality exists without real weights.",
        ]
    return [
        *lines,
        "No threshold is applied, since nobody has measured which of these differences can be"
        " heard. Hold calls with a mode and without, and listen, before you turn it on.",
    ]


def _in_words(each: Likeness) -> str:
    differ = 100 * (1 - each.text_equal)
    codes = 100 * (1 - each.first_code_equal)
    said = (
        f"{each.mode}: another likeliest word piece at {differ:.1f} % of frames, another first code"
    )
    said += f" at {codes:.1f} %"
    if each.codec_snr_db is not None:
        said += f"; the same codes decoded lie {each.codec_snr_db:.1f} dB below in difference"
    return said + "."


def _table(found: Comparison) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading == HEADINGS[0] else "right")
    for each in found.modes:
        table.add_row(
            each.mode,
            _share(each.text_equal),
            _share(each.first_code_equal),
            _share(each.codes_equal),
            f"{each.text_kl:.5f}",
            f"{each.text_kl_p99:.5f}",
            f"{each.codes_kl:.5f}",
            "" if each.heard_equal is None else _share(each.heard_equal),
            "" if each.codec_snr_db is None else f"{each.codec_snr_db:.1f} dB",
        )
    return table


def _share(value: float) -> str:
    return f"{100 * value:.2f} %"


def _runner_settings(name: str, device: str | None, settings: ArtifactSettings) -> dict[str, Any]:
    path = Path(name) if name.endswith((".yaml", ".yml")) else BUILT_IN_FOLDER / f"{name}.yaml"
    pipelines = load_pipelines([path])
    stages = [each for one in pipelines.values() for each in one.stages if each.runner == RUNNER]
    if not stages:
        raise ConfigError(f"the pipeline {name} runs no lockstep model: no stage has {RUNNER}")
    stage = stages[0]
    devices = {"device": stage.devices[0]} if stage.devices else {}
    chosen = {"device": device} if device else devices
    raw: dict[str, Any] = resolve_references(stage.settings, Store(settings))
    return {**raw, **chosen}


def _compare(raw: dict[str, Any], args: argparse.Namespace, console: Console) -> Comparison:
    # Only here: they load torch and soundfile, which listing weights does not need.
    from duologue.commands.talk.sound_files import read_speech
    from duologue.engines.runners.streaming_lm.settings import StreamingLmSettings
    from duologue.engines.runners.streaming_lm.stored_comparison import compare_stored

    try:
        settings = msgspec.convert(raw, StreamingLmSettings)
    except msgspec.ValidationError as error:
        raise ConfigError(f"the settings of {args.pipeline}: {error}") from error
    pcm = read_speech(args.wav)
    if len(pcm) > LONGEST_S * RATE_HZ * SAMPLE_BYTES:
        raise ConfigError(f"{args.wav} is longer than {LONGEST_S} s")
    start = LockstepStart(instructions=args.instructions, voice=args.voice, seed=1)
    with _progress(console) as tell:
        return compare_stored(settings, start, pcm_to_float(pcm), tell)


@contextmanager
def _progress(console: Console) -> Iterator[Any]:
    columns = (TextColumn("{task.description:20}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        tasks: dict[str, TaskID] = {}

        def tell(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = progress.add_task(what, total=total)
            progress.update(tasks[what], completed=done)

        yield tell
