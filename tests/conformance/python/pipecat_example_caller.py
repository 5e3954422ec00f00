"""The example of a Pipecat bot, imported as it is and asked one thing, without a sound card."""

import asyncio
import sys
from pathlib import Path

from calling import Complaints, Heard, report
from loguru import logger
from pipecat.frames.frames import (
    ErrorFrame,
    Frame,
    LLMFullResponseEndFrame,
    LLMRunFrame,
    TTSTextFrame,
)
from pipecat.pipeline.runner import PipelineRunner
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor

sys.path.insert(0, str(Path(__file__).parents[3] / "examples"))

import pipecat_bot


class Ear(FrameProcessor):
    """Notes what is said."""

    def __init__(self, heard: Heard) -> None:
        super().__init__()
        self._heard = heard
        self._said = ""

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        match frame:
            case TTSTextFrame():
                self._said += frame.text
            case LLMFullResponseEndFrame():
                self._heard.note(**{f"assistant: {self._said.strip()}": True})
                self._said = ""
            case ErrorFrame():
                self._heard.note(error=str(frame.error)[:500])
        await self.push_frame(frame, direction)


async def main() -> None:
    complaints, heard = Complaints(), Heard()
    logger.remove()
    logger.add(lambda line: complaints.said.append(str(line)[:500]), level="WARNING")
    task = pipecat_bot.make_task([], [Ear(heard)], "what is the price of tea")

    async def talk() -> None:
        await task.queue_frame(LLMRunFrame())
        # It hands the result on as JSON.
        await heard.until('assistant: Well, you said "x is not on the menu".')
        await task.cancel()

    async with asyncio.TaskGroup() as group:
        group.create_task(PipelineRunner(handle_sigint=False).run(task))
        group.create_task(talk())
    report(heard.notes, complaints.said)


asyncio.run(main())
