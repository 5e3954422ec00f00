"""``duologue talk [URL]``: talk with a running server, in the terminal."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from duologue.clients.address import DEFAULT_URL
from duologue.clients.audio_device import AudioDevice
from duologue.clients.client import DuplexClient
from duologue.clients.clip_device import ClipDevice
from duologue.clients.devices import Device
from duologue.clients.errors import CallEnded, CallError
from duologue.clients.playback import Taken
from duologue.clients.sound_card import PortAudioCard, load_portaudio, sound_devices
from duologue.commands.talk.sound_files import check_writable, read_speech, write_speech
from duologue.commands.talk.transcript_view import TranscriptView
from duologue.core.errors import ConfigError
from duologue.protocol.response_events import ResponseDone

REFRESH_S = 0.1
TAIL_S = 1.0
"""Listened for after the last word, where nobody says when an answer ends."""

ANSWER_TIMEOUT_S = 30.0
"""After a file was said, an answer must have begun within so long."""

KEY_VARIABLE = "DUOLOGUE_API_KEY"


@dataclass(frozen=True, slots=True)
class TalkOptions:
    """What was asked for."""

    url: str
    api_key: str | None
    model: str | None
    instructions: str | None
    wav: Path | None
    out: Path | None


def register(subparsers: Any) -> None:
    """Add ``talk`` to the commands."""
    parser = subparsers.add_parser(
        "talk", help="talk with a running server, in the terminal", description=__doc__
    )
    parser.add_argument("url", nargs="?", default=DEFAULT_URL, metavar="URL", help=DEFAULT_URL)
    parser.add_argument("--api-key", metavar="KEY", help=f"or set {KEY_VARIABLE}")
    parser.add_argument("--model", metavar="NAME", help="one of the server's models")
    parser.add_argument("--instructions", metavar="TEXT", help="how to answer")
    parser.add_argument("--wav", type=Path, metavar="FILE", help="say this file, not a microphone")
    parser.add_argument("--out", type=Path, metavar="FILE", help="with --wav: keep what is heard")
    parser.add_argument("--microphone", metavar="DEVICE", help="number or part of the name")
    parser.add_argument("--speaker", metavar="DEVICE", help="number or part of the name")
    parser.add_argument("--devices", action="store_true", help="list microphones and speakers")


def run(args: argparse.Namespace) -> int:
    """Hold a call until one side hangs up; returns the exit code.

    Raises:
        DuologueError: There is no server, no microphone, or the call broke.
    """
    console = Console()
    if args.devices:
        for device in sound_devices():
            console.print(
                f"{device.index:>3}  {device.name}  ({device.inputs} in, {device.outputs} out)",
                markup=False,
            )
        return 0
    if args.out is not None and args.wav is None:
        raise ConfigError("--out keeps the answer to a file: it needs --wav FILE")
    if args.out is not None:
        check_writable(args.out)
    options = TalkOptions(
        url=args.url,
        api_key=args.api_key or os.environ.get(KEY_VARIABLE),
        model=args.model,
        instructions=args.instructions,
        wav=args.wav,
        out=args.out,
    )
    if options.wav is not None:
        return asyncio.run(talk_through_file(options, options.wav, console))
    # Said now, not after the server was reached.
    load_portaudio()
    card = PortAudioCard(_device(args.microphone), _device(args.speaker))
    return asyncio.run(talk(options, AudioDevice(card), console))


async def talk(options: TalkOptions, device: Device, console: Console) -> int:
    """Talk through a sound card until Ctrl-C."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, stop.set)
    with TranscriptView(console) as view:
        async with DuplexClient.connect(
            options.url, api_key=options.api_key, model=options.model, device=device
        ) as call:
            await _prepare(call, options)
            console.print("Speak. Headphones help; Ctrl-C hangs up.", style="dim")
            while not stop.is_set() and call.ended is None:
                view.show(call.transcript)
                with suppress(TimeoutError):
                    async with asyncio.timeout(REFRESH_S):
                        await stop.wait()
            ended = call.ended
        view.finish(call.transcript)
    return _outcome(ended)


async def talk_through_file(options: TalkOptions, wav: Path, console: Console) -> int:
    """Say a file in real time and listen to the answer."""
    heard: list[bytes] = []

    def keep(_said: bytes, played: Taken) -> None:
        heard.append(played.pcm)

    device = ClipDevice(on_frame=keep)
    device.say(await asyncio.to_thread(read_speech, wav))
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, stop.set)
    ended: CallError | None = None
    with TranscriptView(console) as view:
        async with DuplexClient.connect(
            options.url, api_key=options.api_key, model=options.model, device=device
        ) as call:
            await _prepare(call, options)
            async with asyncio.TaskGroup() as group:
                watcher = group.create_task(_show(call, view), name="view")
                stopper = group.create_task(stop.wait(), name="stop")
                try:
                    ended = await _say_and_listen(call, device, stopper, group)
                finally:
                    watcher.cancel()
                    stopper.cancel()
        view.finish(call.transcript)
    if options.out is not None:
        await asyncio.to_thread(write_speech, options.out, [b"".join(heard)])
        console.print(f"what was heard is in {options.out}", style="dim")
    return _outcome(ended)


async def _say_and_listen(
    call: DuplexClient,
    device: ClipDevice,
    stopper: asyncio.Task[bool],
    group: asyncio.TaskGroup,
) -> CallError | None:
    conversation = group.create_task(_converse(call, device), name="conversation")
    await asyncio.wait((conversation, stopper), return_when=asyncio.FIRST_COMPLETED)
    if not conversation.done():
        conversation.cancel()
        return None
    return conversation.result()


async def _converse(call: DuplexClient, device: ClipDevice) -> CallError | None:
    """Wait until the file was said and its answer heard; returns how the call ended, if it did."""
    answered = call.events()
    try:
        await call.wait_until(lambda: not device.speaking, timeout_s=3600)
        if call.session.audio.input.turn_detection is None:
            if call.answering:
                # A model that decides by itself when to speak: it has no end to wait for.
                await asyncio.sleep(TAIL_S)
                return None
            await call.commit_audio()
            await call.create_response()
        with suppress(TimeoutError):
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                async for event in answered:
                    if isinstance(event, ResponseDone) and event.response.status != "cancelled":
                        if event.response.status == "failed":
                            return _failure(event)
                        break
        await call.wait_until_quiet()
    except CallError as exc:
        return exc
    return None


def _failure(done: ResponseDone) -> CallError:
    details = done.response.status_details
    why = details.error.message if details is not None and details.error is not None else "unknown"
    return CallError(f"the answer failed: {why}")


async def _show(call: DuplexClient, view: TranscriptView) -> None:
    while True:
        view.show(call.transcript)
        await asyncio.sleep(REFRESH_S)


async def _prepare(call: DuplexClient, options: TalkOptions) -> None:
    if options.instructions is None:
        await call.update(transcription=True)
    else:
        await call.update(transcription=True, instructions=options.instructions)


def _outcome(ended: CallError | None) -> int:
    if ended is None or (isinstance(ended, CallEnded) and ended.is_normal):
        return 0
    sys.stderr.write(f"duologue: {ended.message}\n")
    return 1


def _device(choice: str | None) -> int | str | None:
    return int(choice) if choice is not None and choice.isdigit() else choice
