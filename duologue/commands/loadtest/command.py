"""``duologue loadtest [URL]``: hold many calls at once, in real time, and say how they went."""

from __future__ import annotations

import argparse
import asyncio
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from duologue.clients.address import DEFAULT_URL, is_loopback, realtime_url
from duologue.commands.loadtest.caller import CallerResult, Clip, hold_one_call
from duologue.commands.loadtest.summary import summarise, summary_lines
from duologue.core.clock import Clock, SystemClock
from duologue.core.errors import ConfigError

MAX_SESSIONS = 1000
MAX_SECONDS = 3600.0
RAMP_S = 0.02
"""Between two calls: a second for fifty of them."""

QUESTION = "france"


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """What was asked for."""

    url: str
    sessions: int
    seconds: float
    api_key: str | None
    model: str | None


def register(subparsers: Any) -> None:
    """Add ``loadtest`` to the commands."""
    parser = subparsers.add_parser(
        "loadtest", help="hold many calls at once, and say how they went", description=__doc__
    )
    parser.add_argument("url", nargs="?", default=DEFAULT_URL, metavar="URL", help=DEFAULT_URL)
    parser.add_argument(
        "--sessions", type=int, default=4, metavar="N", help=f"calls at once, 1 to {MAX_SESSIONS}"
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=30.0,
        metavar="S",
        help=f"how long, up to {MAX_SECONDS:.0f} (default: %(default)s)",
    )
    parser.add_argument(
        "--wav", type=Path, metavar="FILE", help="what each caller says; else a bundled question"
    )
    parser.add_argument("--model", metavar="NAME", help="one of the server's models")
    parser.add_argument("--api-key", metavar="KEY", help="or set DUOLOGUE_API_KEY")
    parser.add_argument(
        "--allow-remote",
        action="store_true",
        help="load a server on another machine; do that to your own ones only",
    )


def run(args: argparse.Namespace) -> int:
    """Hold the calls; returns 0 where all went well, else 1.

    Raises:
        ConfigError: A number is out of bounds, the server is remote, or the file is none.
    """
    options = checked(args, os.environ.get("DUOLOGUE_API_KEY"))
    clip = load_clip(args.wav)
    print(
        f"{options.sessions} calls for {options.seconds:g} s with {options.url}; each says "
        f"{clip.length_s:.1f} s, waits for the answer, and begins again"
    )
    summary = summarise(asyncio.run(hold_all(options, clip, SystemClock())))
    for line in summary_lines(summary):
        print(line)
    return 0 if summary.is_clean else 1


def checked(args: argparse.Namespace, api_key: str | None) -> LoadOptions:
    """Return the options.

    Raises:
        ConfigError: One of them is out of bounds.
    """
    url = realtime_url(args.url)
    if not is_loopback(url) and not args.allow_remote:
        raise ConfigError(
            f"{url} is not on this machine: add --allow-remote if it is your server and may be "
            "loaded"
        )
    if not 1 <= args.sessions <= MAX_SESSIONS:
        raise ConfigError(f"--sessions {args.sessions}: give a number from 1 to {MAX_SESSIONS}")
    if not 0 < args.seconds <= MAX_SECONDS:
        raise ConfigError(f"--seconds {args.seconds:g}: give up to {MAX_SECONDS:.0f}")
    return LoadOptions(url, args.sessions, args.seconds, args.api_key or api_key, args.model)


def load_clip(wav: Path | None) -> Clip:
    """Return what the callers say: a file, or a bundled question.

    Raises:
        ConfigError: The file cannot be read, or is silent.
    """
    # The sound library is not needed for --help.
    from duologue.commands.demo.questions import FOLDER, speech_span
    from duologue.commands.talk.sound_files import read_speech

    path = wav or FOLDER / f"{QUESTION}.flac"
    pcm = read_speech(path)
    _, speech_until_s = speech_span(pcm)
    if not speech_until_s:
        raise ConfigError(f"{path} holds no sound, so nobody would answer it")
    return Clip(pcm, speech_until_s)


async def hold_all(options: LoadOptions, clip: Clip, clock: Clock) -> list[CallerResult]:
    """Hold all calls; they begin one after the other and end together."""
    until = clock.now() + options.seconds + RAMP_S * options.sessions
    async with asyncio.TaskGroup() as group:
        callers = []
        for number in range(options.sessions):
            work = hold_one_call(
                options.url,
                clip,
                until,
                clock,
                api_key=options.api_key,
                model=options.model,
                seed=number,
            )
            callers.append(group.create_task(work, name=f"caller-{number}"))
            await asyncio.sleep(RAMP_S)
    return [caller.result() for caller in callers]
