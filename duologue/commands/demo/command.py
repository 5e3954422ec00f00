"""``duologue demo``: hold a spoken call with real models on this machine, interrupt it, judge it.

Starts a gateway of its own, asks bundled questions in real time in another voice, speaks over the
second answer, and checks that the answers can be understood and the interruption was clean.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console

from duologue.artifacts import ArtifactSettings, State, Store
from duologue.artifacts.progress import shown_on
from duologue.commands.demo import lockstep
from duologue.commands.demo.checks import judge
from duologue.commands.demo.conversation import hold_call, transcribe_answers
from duologue.commands.demo.picture import draw_call
from duologue.commands.demo.questions import ORDER, Question, load_questions
from duologue.commands.demo.record import CallRecord
from duologue.commands.demo.server import WorkerReady, running_server
from duologue.commands.demo.tables import check_lines, interruption_lines, latency_table
from duologue.commands.picture.png import load_matplotlib
from duologue.commands.talk.command import KEY_VARIABLE
from duologue.commands.talk.sound_files import write_speech
from duologue.commands.talk.transcript_view import TranscriptView
from duologue.core.clock import Clock, SystemClock
from duologue.core.errors import ConfigError

PROFILE = "default"
LOCKSTEP_MODEL = lockstep.MODEL
LEAST_QUESTIONS = 3
WAV_NAME, PICTURE_NAME, LOG_NAME = "call.wav", "call.png", "server.log"


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """What was asked for."""

    questions: int
    out: Path
    url: str | None
    api_key: str | None
    keep: bool
    verbose: bool


def register(subparsers: Any) -> None:
    """Add ``demo`` to the commands."""
    parser = subparsers.add_parser(
        "demo",
        help="hold a call with bundled questions, interrupt it, and judge it",
        description=__doc__,
    )
    parser.add_argument(
        "--questions",
        type=int,
        default=LEAST_QUESTIONS,
        metavar="N",
        help=f"how many to ask, {LEAST_QUESTIONS} to {len(ORDER)} (default: %(default)s)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path(),
        metavar="DIR",
        help=f"where {WAV_NAME}, {PICTURE_NAME} and {LOG_NAME} go (default: here)",
    )
    parser.add_argument(
        "--model",
        choices=(LOCKSTEP_MODEL,),
        help="show calls with a model that hears while it speaks: a small one of random numbers, "
        "made on the spot, which makes noise (needs the extra torch)",
    )
    parser.add_argument("--url", metavar="URL", help="use a server that runs already")
    parser.add_argument("--api-key", metavar="KEY", help=f"of that server; or set {KEY_VARIABLE}")
    parser.add_argument(
        "--keep", action="store_true", help="leave the gateway running afterwards, until Ctrl-C"
    )
    parser.add_argument(
        "--verbose", action="store_true", help="show what each check saw, passed or not"
    )


def run(args: argparse.Namespace) -> int:
    """Hold the call; returns 0 if it was a good one, 1 if a check failed.

    Raises:
        DuologueError: The call could not be held.
    """
    if not LEAST_QUESTIONS <= args.questions <= len(ORDER):
        raise ConfigError(
            f"--questions {args.questions}: give a number from {LEAST_QUESTIONS} to {len(ORDER)}"
        )
    options = DemoOptions(
        questions=args.questions,
        out=args.out,
        url=args.url,
        api_key=args.api_key or os.environ.get(KEY_VARIABLE),
        keep=args.keep,
        verbose=args.verbose,
    )
    if args.model == LOCKSTEP_MODEL:
        return _lockstep(options)
    # All that can be missing is missed now, not after the call.
    load_matplotlib()
    questions = load_questions(options.questions)
    _make_folder(options.out)
    console = Console(highlight=False)
    if options.url is None:
        _pull_missing(console)
    return asyncio.run(_demo(options, list(questions), console, SystemClock()))


async def _demo(
    options: DemoOptions, questions: list[Question], console: Console, clock: Clock
) -> int:
    began_at = clock.now()
    async with _server(options, console) as url:
        console.print("the call:", style="bold")
        with TranscriptView(console) as view:
            record = await hold_call(url, questions, view, clock, api_key=options.api_key)
        await transcribe_answers(url, record, api_key=options.api_key)
        passed = await asyncio.to_thread(report, options, record, console)
        console.print(f"\n{clock.now() - began_at:.0f} s for the call and its start", style="dim")
        if options.keep and options.url is None:
            await _keep(url, console)
    return 0 if passed else 1


def report(options: DemoOptions, record: CallRecord, console: Console) -> bool:
    """Write the files, print the tables; tells whether all checks passed."""
    wav, picture = options.out / WAV_NAME, options.out / PICTURE_NAME
    write_speech(wav, [bytes(record.said), bytes(record.played)])
    draw_call(record, picture)
    console.print()
    console.print(latency_table(record))
    for line in interruption_lines(record):
        console.print(line, markup=False, soft_wrap=not console.is_terminal)
    if record.gap_s:
        console.print(f"{record.gap_s:.2f} s of gaps inside answers", style="yellow")
    console.print()
    checks = judge(record)
    for text in check_lines(checks, verbose=options.verbose):
        console.print(text, soft_wrap=not console.is_terminal)
    console.print(f"\n{wav} (left: caller, right: Duologue), {picture}", markup=False)
    return all(check.passed for check in checks)


def _make_folder(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise ConfigError(f"cannot make the folder {out}: {exc.strerror}") from exc


def _lockstep(options: DemoOptions) -> int:
    if options.url is not None or options.keep:
        raise ConfigError(f"--model {LOCKSTEP_MODEL} has a gateway of its own: no --url, no --keep")
    _make_folder(options.out)
    with TemporaryDirectory(prefix="duologue-") as folder:
        console = Console(highlight=False)
        return asyncio.run(lockstep.demo(Path(folder), options.out, console, SystemClock()))


def _pull_missing(console: Console) -> None:
    """Fetch the weights that are not here; says nothing where all are."""
    store = Store(ArtifactSettings())
    wanted = store.manifest.profile(PROFILE)
    missing = [
        status.artifact.id
        for status in store.status()
        if status.artifact.id in wanted and status.state is not State.READY
    ]
    if missing:
        console.print(f"fetching {len(missing)} models into {store.cache_dir}", markup=False)
        with shown_on() as progress:
            store.pull(missing, progress)


@asynccontextmanager
async def _server(options: DemoOptions, console: Console) -> AsyncIterator[str]:
    if options.url is not None:
        yield options.url
        return
    loaded: list[str] = []
    status = console.status("starting the gateway")

    def show(ready: WorkerReady) -> None:
        name = ready.worker.partition("/")[0]
        loaded.append(name)
        status.update(f"loading models; ready: {', '.join(loaded)}")
        if not console.is_terminal:
            console.print(f"loaded {name} ({ready.took_s:.1f} s)", style="dim")

    status.start()
    try:
        async with running_server(options.out / LOG_NAME, show) as url:
            # One thing at a time can be drawn again and again; next is the transcript.
            status.stop()
            yield url
    finally:
        status.stop()


async def _keep(url: str, console: Console) -> None:
    console.print(f"the gateway goes on at {url}; Ctrl-C ends it", markup=False)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, stop.set)
    with suppress(asyncio.CancelledError):
        await stop.wait()
