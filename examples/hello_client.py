"""Ask a Duologue server something, hear the answer, and interrupt it: the SDK on one page.

duologue serve                                   # in another terminal
python examples/hello_client.py                  # types a question
python examples/hello_client.py question.wav     # says a WAV file of 16-bit samples
"""

import asyncio
import os
import sys

from duologue.clients import DuplexClient, LineState, Side, read_wav

URL = os.environ.get("DUOLOGUE_URL", "http://localhost:8080")


async def main(question: str | None) -> str | None:
    """Hold the call; returns what went wrong."""
    async with DuplexClient.connect(URL) as call:
        await call.update(instructions="You are kind and brief.", transcription=True)

        if question is None:
            await call.say_text("How do I boil an egg?")
        else:
            await say_in_real_time(call, question)
            await call.wait_until(lambda: call.answering)

        # Some words into the answer, one more question cuts it off. The loudspeaker (here only a
        # clock: no device was given) stops, and the server is told how much was heard.
        await call.wait_until(lambda: heard_words(call) >= 8 or not call.answering)
        answer = await call.ask("And in one word?")
        if answer.error is not None:
            return f"{answer.error.code}: {answer.error.message}"
        await call.wait_until_quiet()

        print("What was said, and what was heard of it:")
        for line in call.transcript:
            cut = f"  (not heard: {line.unheard_text.strip()})" if line.unheard_text else ""
            interrupted = " [interrupted]" if line.state is LineState.CUT else ""
            print(f"  {line.side.value}{interrupted}: {line.heard_text}{cut}")
        for turn in call.timing:
            if turn.wait_s is not None:
                print(f"  waited {turn.wait_s:.2f} s for the first sound of an answer")
    return None


def heard_words(call: DuplexClient) -> int:
    """How many words of answers were heard so far."""
    answers = [line for line in call.transcript if line.side is Side.ASSISTANT]
    return sum(len(line.heard_text.split()) for line in answers)


async def say_in_real_time(call: DuplexClient, path: str) -> None:
    """Say a file as a person would, and be silent afterwards, so that the turn can end."""
    pcm = read_wav(path)
    frame = 24_000 * 2 // 50
    for start in range(0, len(pcm) + 50 * frame, frame):
        call.send_audio(pcm[start : start + frame].ljust(frame, b"\0"))
        await asyncio.sleep(0.02)


sys.exit(asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else None)))
