"""Pipecat's streaming recogniser, which finds turns itself or leaves them to the server."""

import asyncio
import sys

from calling import API_KEY, RATE_HZ, WS_URL, Heard, microphone, speech
from pipecat.frames.frames import InputAudioRawFrame
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.task import PipelineParams, PipelineTask
from pipecat.processors.audio.vad_processor import VADProcessor
from pipecat.services.openai.stt import OpenAIRealtimeSTTService
from pipecat_ear import Ear, Loudness, hold_talk, listen_for_complaints, loudness_params


async def main() -> None:
    complaints, heard = listen_for_complaints(), Heard()
    by_server = sys.argv[1] == "server"
    recogniser = OpenAIRealtimeSTTService(
        api_key=API_KEY,
        base_url=WS_URL.partition("?")[0],
        turn_detection={"type": "server_vad", "silence_duration_ms": 300} if by_server else False,
        settings=OpenAIRealtimeSTTService.Settings(model="gpt-4o-transcribe"),
    )
    detector = [] if by_server else [VADProcessor(vad_analyzer=Loudness(params=loudness_params()))]
    task = PipelineTask(
        Pipeline([*detector, recogniser, Ear(heard)]),
        params=PipelineParams(audio_in_sample_rate=RATE_HZ),
        enable_rtvi=False,
    )

    async def talk() -> None:
        for saying in ("hello again", "hello long"):
            async for chunk in microphone(speech(saying)):
                await task.queue_frame(InputAudioRawFrame(chunk, RATE_HZ, 1))
            await heard.until(f"user: {saying}")

    await hold_talk(task, talk, heard, complaints)


asyncio.run(main())
