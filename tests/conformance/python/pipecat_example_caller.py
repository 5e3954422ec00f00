"""The example of a Pipecat bot, imported as it is and asked one thing, without a sound card."""

import asyncio
import sys
from pathlib import Path

from calling import Heard
from pipecat.frames.frames import LLMRunFrame
from pipecat_ear import Ear, hold_talk, listen_for_complaints

sys.path.insert(0, str(Path(__file__).parents[3] / "examples"))

import pipecat_bot


async def main() -> None:
    complaints, heard = listen_for_complaints(), Heard()
    task = pipecat_bot.make_task([], [Ear(heard)], "what is the price of tea")

    async def talk() -> None:
        await task.queue_frame(LLMRunFrame())
        # It hands the result on as JSON.
        await heard.until('assistant: Well, you said "x is not on the menu".')

    await hold_talk(task, talk, heard, complaints)


asyncio.run(main())
