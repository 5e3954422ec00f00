"""A call with Pipecat's realtime service, whose events are strict and whose errors are fatal."""

import asyncio

from calling import API_KEY, ONE_QUESTION, QUESTION, RATE_HZ, WS_URL, Heard, microphone, speech
from pipecat.adapters.llm.schemas.tools_schema import ToolsSchema
from pipecat.frames.frames import InputAudioRawFrame, LLMRunFrame
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.task import PipelineParams, PipelineTask
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.aggregators.llm_response_universal import LLMContextAggregatorPair
from pipecat.services.llm_service import FunctionCallParams
from pipecat.services.openai.realtime import events
from pipecat.services.openai.realtime.llm import OpenAIRealtimeLLMService
from pipecat_ear import WEATHER, Ear, hold_talk, listen_for_complaints


async def main() -> None:
    complaints, heard = listen_for_complaints(), Heard()
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
    # What is typed comes in the context; later it is spoken to.
    typed = [] if ONE_QUESTION else [{"role": "user", "content": "hello there"}]
    context = LLMContext(typed, tools=ToolsSchema(standard_tools=[WEATHER]))
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

    await hold_talk(task, talk, heard, complaints)


asyncio.run(main())
