"""What the callers with Pipecat share: an ear for what passes, a tool, and how a talk is held."""

import array
import asyncio
from collections.abc import Awaitable, Callable

from calling import Complaints, Heard, report
from loguru import logger
from pipecat.adapters.llm.schemas.function_schema import FunctionSchema
from pipecat.audio.vad.vad_analyzer import VADAnalyzer, VADParams
from pipecat.frames.frames import (
    ErrorFrame,
    Frame,
    InterruptionFrame,
    LLMFullResponseEndFrame,
    MetricsFrame,
    TranscriptionFrame,
    TTSAudioRawFrame,
    TTSTextFrame,
)
from pipecat.metrics.metrics import LLMUsageMetricsData
from pipecat.pipeline.runner import PipelineRunner
from pipecat.pipeline.task import PipelineTask
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor

WEATHER = FunctionSchema(
    name="weather",
    description="Tell the weather.",
    properties={"what": {"type": "string"}},
    required=["what"],
)


class Loudness(VADAnalyzer):
    """Beeps are voice; what Pipecat brings along knows only people's."""

    def num_frames_required(self) -> int:
        return 512

    def voice_confidence(self, buffer: bytes) -> float:
        return float(max(array.array("h", buffer), default=0) > 1000)


def loudness_params() -> VADParams:
    """Steady beeps are as loud as they are: the confidence alone tells."""
    return VADParams(min_volume=0.0)


class Ear(FrameProcessor):
    """Notes what passes where it stands."""

    def __init__(self, heard: Heard) -> None:
        super().__init__()
        self._heard = heard
        self._said = ""

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        match frame:
            case TranscriptionFrame():
                self._heard.note(**{f"user: {frame.text}": True})
            case TTSAudioRawFrame():
                self._heard.count("audio_bytes", len(frame.audio))
                self._heard.note(rate_hz=frame.sample_rate)
            case TTSTextFrame():
                self._said += frame.text
            case LLMFullResponseEndFrame():
                self._heard.note(**{f"assistant: {self._said.strip()}": True})
                self._heard.count("answers")
                self._said = ""
            case InterruptionFrame():
                self._heard.count("interruptions")
                self._said = ""
            case MetricsFrame():
                for each in frame.data:
                    if isinstance(each, LLMUsageMetricsData):
                        self._heard.count("tokens", each.value.total_tokens)
            case ErrorFrame():
                self._heard.note(error=str(frame.error)[:500])
        await self.push_frame(frame, direction)


def listen_for_complaints() -> Complaints:
    """Collect what Pipecat warns of, in its own log, and all others in Python's."""
    complaints = Complaints()
    logger.remove()
    logger.add(lambda line: complaints.said.append(str(line)[:500]), level="WARNING")
    return complaints


async def hold_talk(
    task: PipelineTask, talk: Callable[[], Awaitable[None]], heard: Heard, complaints: Complaints
) -> None:
    """Run a bot while somebody talks with it, who cancels it at the end; then report."""

    async def talk_and_leave() -> None:
        await talk()
        await task.cancel()

    async with asyncio.TaskGroup() as group:
        group.create_task(PipelineRunner(handle_sigint=False).run(task))
        group.create_task(talk_and_leave())
    report(heard.notes, complaints.said)
