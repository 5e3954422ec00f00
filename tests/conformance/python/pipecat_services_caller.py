"""Pipecat's separate services in one bot: recogniser, language model and voice, by plain HTTP.

Pipecat holds the conversation here: it finds the turns, cuts answers off and runs the tools.
"""

import asyncio

from calling import API_KEY, BASE_URL, RATE_HZ, Heard, microphone, speech
from pipecat.adapters.llm.schemas.tools_schema import ToolsSchema
from pipecat.frames.frames import InputAudioRawFrame
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.task import PipelineParams, PipelineTask
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.aggregators.llm_response_universal import (
    LLMContextAggregatorPair,
    LLMUserAggregatorParams,
)
from pipecat.processors.audio.vad_processor import VADProcessor
from pipecat.services.llm_service import FunctionCallParams
from pipecat.services.openai.llm import OpenAILLMService
from pipecat.services.openai.stt import OpenAISTTService
from pipecat.services.openai.tts import OpenAITTSService
from pipecat.turns.user_stop import SpeechTimeoutUserTurnStopStrategy
from pipecat.turns.user_turn_strategies import UserTurnStrategies
from pipecat_ear import (
    WEATHER,
    Ear,
    Loudness,
    hold_talk,
    listen_for_complaints,
    loudness_params,
)

DOOR = {"api_key": API_KEY, "base_url": BASE_URL}


def make_task(heard: Heard, context: LLMContext) -> PipelineTask:
    async def weather(params: FunctionCallParams) -> None:
        heard.note(tool=params.arguments["what"], before_tool=heard.notes["audio_bytes"])
        await params.result_callback(f"sun over {params.arguments['what']}")

    model = OpenAILLMService(
        **DOOR, settings=OpenAILLMService.Settings(model="duologue", system_instruction="Be kind.")
    )
    model.register_function("weather", weather)
    recogniser = OpenAISTTService(
        **DOOR, settings=OpenAISTTService.Settings(model="gpt-4o-transcribe", prompt="A call.")
    )
    voice = OpenAITTSService(
        **DOOR, settings=OpenAITTSService.Settings(voice="ash", instructions="Speak kindly.")
    )
    turns = UserTurnStrategies(stop=[SpeechTimeoutUserTurnStopStrategy(user_speech_timeout=0.3)])
    pair = LLMContextAggregatorPair(
        context, user_params=LLMUserAggregatorParams(user_turn_strategies=turns)
    )
    detector = VADProcessor(vad_analyzer=Loudness(params=loudness_params()))
    ears = [detector, recogniser, Ear(heard)]
    return PipelineTask(
        Pipeline([*ears, pair.user(), model, voice, Ear(heard), pair.assistant()]),
        params=PipelineParams(
            audio_in_sample_rate=RATE_HZ,
            audio_out_sample_rate=RATE_HZ,
            enable_metrics=True,
            enable_usage_metrics=True,
        ),
        enable_rtvi=False,
    )


async def main() -> None:
    complaints, heard = listen_for_complaints(), Heard()
    context = LLMContext([], tools=ToolsSchema(standard_tools=[WEATHER]))
    task = make_task(heard, context)

    async def say(text: str) -> None:
        async for chunk in microphone(speech(text)):
            await task.queue_frame(InputAudioRawFrame(chunk, RATE_HZ, 1))

    async def talk() -> None:
        await say("hello again")
        await heard.until("assistant: Well, you said hello again.")

        before = int(heard.notes["audio_bytes"])
        await say("hello long")
        await heard.until("audio_bytes", before + RATE_HZ * 2)
        interruptions = int(heard.notes.get("interruptions", 0))
        await say("hello weather")
        await heard.until("interruptions", interruptions + 1)
        await heard.until("tool")
        # It hands the result on as JSON.
        await heard.until('assistant: Well, you said "sun over x".')
        await heard.until("audio_bytes", int(heard.notes["before_tool"]) + 1)
        history = [(each.get("role"), each.get("content")) for each in context.get_messages()]
        heard.note(history=history)

    await hold_talk(task, talk, heard, complaints)


asyncio.run(main())
