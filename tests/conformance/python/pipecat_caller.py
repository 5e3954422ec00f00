"""A call with Pipecat's realtime service, whose events are strict and whose errors are fatal."""

import asyncio

from calling import (
    API_KEY,
    ONE_QUESTION,
    QUESTION,
    RATE_HZ,
    WS_URL,
    Complaints,
    Heard,
    microphone,
    report,
    speech,
)
from loguru import logger
from pipecat.adapters.llm.schemas.function_schema import FunctionSchema
from pipecat.adapters.llm.schemas.tools_schema import ToolsSchema
from pipecat.frames.frames import (
    ErrorFrame,
    Frame,
    InputAudioRawFrame,
    InterruptionFrame,
    LLMFullResponseEndFrame,
    LLMRunFrame,
    TTSAudioRawFrame,
    TTSTextFrame,
)
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.runner import PipelineRunner
from pipecat.pipeline.task import PipelineParams, PipelineTask
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.aggregators.llm_response_universal import LLMContextAggregatorPair
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor
from pipecat.services.llm_service import FunctionCallParams
from pipecat.services.openai.realtime import events
from pipecat.services.openai.realtime.llm import OpenAIRealtimeLLMService

WEATHER = FunctionSchema(
    name="weather",
    description="Tell the weather.",
    properties={"what": {"type": "string"}},
    required=["what"],
)


class Ear(FrameProcessor):
    """Notes what passes."""

    def __init__(self, heard: Heard) -> None:
        super().__init__()
        self._heard = heard
        self._said = ""

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        match frame:
            case TTSAudioRawFrame():
                self._heard.count("audio_bytes", len(frame.audio))
            case TTSTextFrame():
                self._said += frame.text
            case LLMFullResponseEndFrame():
                self._heard.note(**{f"assistant: {self._said.strip()}": True})
                self._heard.count("answers")
                self._said = ""
            case InterruptionFrame():
                self._heard.count("interruptions")
                self._said = ""
            case ErrorFrame():
                self._heard.note(error=str(frame.error)[:500])
        await self.push_frame(frame, direction)


async def main() -> None:
    complaints, heard = Complaints(), Heard()
    logger.remove()
    logger.add(lambda line: complaints.said.append(str(line)[:500]), level="WARNING")
    service = OpenAIRealtimeLLMService(
        api_key=API_KEY,
        base_url=WS_URL.partition("?")[0],
        settings=OpenAIRealtimeLLMService.Settings(
            model="duologue",
            system_instruction="Be kind.",
            session_properties=events.SessionProperties(
                audio=events.AudioConfiguration(
                    input=events.AudioInput(transcription=events.InputAudioTranscription())
                )
            ),
        ),
    )

    async def weather(params: FunctionCallParams) -> None:
        heard.note(tool=params.arguments["what"])
        await params.result_callback(f"sun over {params.arguments['what']}")

    service.register_function("weather", weather)
    context = LLMContext([], tools=ToolsSchema(standard_tools=[WEATHER]))
    pair = LLMContextAggregatorPair(context)
    task = PipelineTask(
        Pipeline([pair.user(), service, Ear(heard), pair.assistant()]),
        params=PipelineParams(audio_in_sample_rate=RATE_HZ, audio_out_sample_rate=RATE_HZ),
        enable_rtvi=False,
    )

    async def say(pcm: bytes) -> None:
        async for chunk in microphone(pcm):
            await task.queue_frame(InputAudioRawFrame(chunk, RATE_HZ, 1))

    async def talk() -> None:
        # The service configures the session when it is first asked to run.
        await task.queue_frame(LLMRunFrame())
        await heard.until("answers", 1)
        if ONE_QUESTION:
            await say(speech(QUESTION))
            await heard.until("answers", 2)
            await task.cancel()
            return
        await say(speech("hello again"))
        await heard.until("assistant: Well, you said hello again.")

        before = int(heard.notes["audio_bytes"])
        await say(speech("hello long"))
        await heard.until("audio_bytes", before + RATE_HZ * 2)
        interruptions = int(heard.notes.get("interruptions", 0))
        answers = int(heard.notes["answers"])
        await say(speech("hello again"))
        await heard.until("interruptions", interruptions + 1)
        await heard.until("answers", answers + 1)

        await say(speech("hello weather"))
        await heard.until("tool")
        # It hands the result on as JSON.
        await heard.until('assistant: Well, you said "sun over x".')
        history = [(each.get("role"), each.get("content")) for each in context.get_messages()]
        heard.note(history=history)
        await task.cancel()

    async with asyncio.TaskGroup() as group:
        group.create_task(PipelineRunner(handle_sigint=False).run(task))
        group.create_task(talk())
    report(heard.notes, complaints.said)


asyncio.run(main())
