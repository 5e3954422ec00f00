"""A waiter who knows the menu: an agent with a voice and a tool, in one file.

duologue serve                                              # in another terminal
pip install 'duologue[audio]'                               # microphone and loudspeaker
python examples/voice_agent.py                              # talk; Ctrl-C ends it
python examples/voice_agent.py --wav question.wav --out answer.wav     # without a sound card

A WAV file is mono, 16 bits, 24 kHz. Wear headphones: a microphone that hears the loudspeaker
interrupts the answers. --webrtc calls over WebRTC (pip install 'duologue[webrtc]').
"""

import argparse
import asyncio
import os
import wave

from duologue.clients import CallEnded, DuplexClient, Response
from duologue.clients.audio_device import AudioDevice

URL = os.environ.get("DUOLOGUE_URL", "http://localhost:8080")
API_KEY = os.environ.get("DUOLOGUE_API_KEY")
RATE_HZ = 24_000

MENU = {"tea": "two euros", "cake": "four euros", "soup": "six euros"}


def price(what: str) -> str:
    """Tell the price of something on the menu.

    Args:
        what: One thing, such as tea.
    """
    return f"{what} costs {MENU[what]}" if what in MENU else f"{what} is not on the menu"


async def main(options: argparse.Namespace) -> None:
    device = None if options.wav else AudioDevice()
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
        if options.wav:
            answer = await call.ask_audio(read_wav(options.wav))
            show(answer)
            if options.out:
                write_wav(options.out, answer.audio)
            return
        print("Talk. Ctrl-C ends the call.")
        async for answer in call.responses():
            try:
                show(await answer.finished())
            except CallEnded:
                return


def show(answer: Response) -> None:
    """Print what was said, or which functions were called."""
    for asked in answer.calls:
        print(f"  ({asked.name} {asked.arguments})")
    if answer.text:
        interrupted = " [interrupted]" if answer.status == "cancelled" else ""
        print(f"waiter{interrupted}: {answer.text}")


def read_wav(path: str) -> bytes:
    with wave.open(path) as file:
        shape = (file.getnchannels(), file.getsampwidth(), file.getframerate())
        if shape != (1, 2, RATE_HZ):
            raise SystemExit(f"{path} is not mono, 16 bits, {RATE_HZ} Hz")
        return file.readframes(file.getnframes())


def write_wav(path: str, pcm: bytes) -> None:
    with wave.open(path, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE_HZ)
        file.writeframes(pcm)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wav", help="say this file instead of using the microphone")
    parser.add_argument("--out", help="write the answer to this WAV file")
    parser.add_argument("--webrtc", action="store_true", help="call over WebRTC")
    try:
        asyncio.run(main(parser.parse_args()))
    except KeyboardInterrupt:
        print()
