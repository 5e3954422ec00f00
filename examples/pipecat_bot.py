"""A Pipecat bot whose realtime service is a Duologue server.

duologue serve                                              # in another terminal
pip install 'pipecat-ai[openai,local]'                      # needs PortAudio's headers
python examples/pipecat_bot.py                              # talk; Ctrl-C ends it

Only the base URL of Pipecat's OpenAI service is changed; DUOLOGUE_BASE_URL and DUOLOGUE_API_KEY
name another server. For telephone or browser, put another transport of Pipecat's at both ends of
the pipeline.
"""

import asyncio
import os
from collections.abc import Sequence

from pipecat.adapters.schemas.function_schema import FunctionSchema
from pipecat.adapters.schemas.tools_schema import ToolsSchema
from pipecat.frames.frames import LLMRunFrame
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.runner import PipelineRunner
from pipecat.pipeline.task import PipelineParams, PipelineTask
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.aggregators.llm_response_universal import LLMContextAggregatorPair
from pipecat.processors.frame_processor import FrameProcessor
from pipecat.services.llm_service import FunctionCallParams
from pipecat.services.openai.realtime import events
from pipecat.services.openai.realtime.llm import OpenAIRealtimeLLMService

BASE_URL = os.environ.get("DUOLOGUE_BASE_URL", "http://localhost:8080/v1")
API_KEY = os.environ.get("DUOLOGUE_API_KEY", "any")
RATE_HZ = 24_000

MENU = {"tea": "two euros", "cake": "four euros", "soup": "six euros"}

PRICE = FunctionSchema(
    name="price",
    description="Tell the price of something on the menu.",
    properties={"what": {"type": "string", "description": "One thing, such as tea."}},
    required=["what"],
)


async def price(params: FunctionCallParams) -> None:
    """Look a price up."""
    what = params.arguments["what"]
    known = what in MENU
    await params.result_callback(
        f"{what} costs {MENU[what]}" if known else f"{what} is not on the menu"
    )


def make_task(
    ears: Sequence[FrameProcessor], mouths: Sequence[FrameProcessor], first_words: str = "Hello!"
) -> PipelineTask:
    """Put the bot between what hears and what speaks."""
    service = OpenAIRealtimeLLMService(
        api_key=API_KEY,
        base_url=BASE_URL.replace("http", "ws", 1) + "/realtime",
        settings=OpenAIRealtimeLLMService.Settings(
            model=os.environ.get("DUOLOGUE_MODEL", "duologue"),
            system_instruction="You are a waiter. Be kind and brief. Look prices up.",
            session_properties=events.SessionProperties(
                audio=events.AudioConfiguration(
                    input=events.AudioInput(transcription=events.InputAudioTranscription())
                )
            ),
        ),
    )
    service.register_function("price", price)
    context = LLMContext(
        [{"role": "user", "content": first_words}], tools=ToolsSchema(standard_tools=[PRICE])
    )
    pair = LLMContextAggregatorPair(context)
    return PipelineTask(
        Pipeline([*ears, pair.user(), service, *mouths, pair.assistant()]),
        params=PipelineParams(audio_in_sample_rate=RATE_HZ, audio_out_sample_rate=RATE_HZ),
    )


async def main() -> None:
    """Talk through the sound card."""
    from pipecat.transports.local.audio import LocalAudioTransport, LocalAudioTransportParams

    sound_card = LocalAudioTransport(
        LocalAudioTransportParams(audio_in_enabled=True, audio_out_enabled=True)
    )
    task = make_task([sound_card.input()], [sound_card.output()])
    await task.queue_frame(LLMRunFrame())
    await PipelineRunner().run(task)


if __name__ == "__main__":
    asyncio.run(main())
