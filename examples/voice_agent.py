"""A waiter who knows the menu: an agent with a voice and a tool, in one file.

duologue serve                                              # in another terminal
pip install 'duologue[audio]'                               # microphone and loudspeaker
python examples/voice_agent.py                              # talk; Ctrl-C ends it
python examples/voice_agent.py --wav question.wav --out answer.wav     # without a sound card

A WAV file has 16-bit samples, at any rate. Wear headphones: a microphone that hears the loudspeaker
interrupts the answers. --webrtc calls over WebRTC (pip install 'duologue[webrtc]').
"""

import argparse
import asyncio
import os
import sys

from duologue.clients import CallEnded, DuplexClient, Response, read_wav, write_wav
from duologue.clients.audio_device import AudioDevice

URL = os.environ.get("DUOLOGUE_URL", "http://localhost:8080")
API_KEY = os.environ.get("DUOLOGUE_API_KEY")

MENU = {"tea": "two euros", "cake": "four euros", "soup": "six euros"}


def price(what: str) -> str:
    """Tell the price of something on the menu.

    Args:
        what: One thing, such as tea.
    """
    return f"{what} costs {MENU[what]}" if what in MENU else f"{what} is not on the menu"


async def main(options: argparse.Namespace) -> int:
    """Hold the call; returns the exit status."""
    question = read_wav(options.wav) if options.wav else None
    device = AudioDevice() if question is None else None
    call = DuplexClient.connect(
        URL,
        api_key=API_KEY,
        transport="webrtc" if options.webrtc else "websocket",
        device=device,
        instructions="You are a waiter. Be kind and brief. Look prices up.",
        transcription=True,
        tools=[price],
    )
    async with call:
        if question is not None:
            answer = await call.ask_audio(question)
            show(answer)
            if options.out:
                write_wav(options.out, answer.audio)
            return 0 if answer.error is None else 1
        print("Talk. Ctrl-C ends the call.")
        async for answer in call.responses():
            try:
                show(await answer.finished())
            except CallEnded:
                break
    return 0


def show(answer: Response) -> None:
    """Print what was said, which functions were called, or what went wrong."""
    if answer.error is not None:
        print(f"{answer.error.code}: {answer.error.message}", file=sys.stderr)
    for asked in answer.calls:
        print(f"  ({asked.name} {asked.arguments})")
    if answer.text:
        interrupted = " [interrupted]" if answer.status == "cancelled" else ""
        print(f"waiter{interrupted}: {answer.text}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wav", help="say this file instead of using the microphone")
    parser.add_argument("--out", help="write the answer to this WAV file")
    parser.add_argument("--webrtc", action="store_true", help="call over WebRTC")
    try:
        sys.exit(asyncio.run(main(parser.parse_args())))
    except KeyboardInterrupt:
        print()
