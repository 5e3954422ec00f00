"""Echo over pipecat's FastAPI WebSocket transport: input -> echo -> output, a pipeline per call.

Runs in an environment of its own (see pipecat_env.py). Serializer: the same Realtime JSON that the
load generator speaks, written the way pipecat's own JSON serializers are (standard json and
base64, no resampling). No VAD; everything else is pipecat's default.
"""

import argparse
import base64
import json
import signal
import sys

import uvicorn
from fastapi import FastAPI, WebSocket
from loguru import logger
from pipecat.frames.frames import AudioRawFrame, Frame, InputAudioRawFrame, OutputAudioRawFrame
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineParams, PipelineWorker
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor
from pipecat.serializers.base_serializer import FrameSerializer
from pipecat.transports.websocket.fastapi import (
    FastAPIWebsocketParams,
    FastAPIWebsocketTransport,
)
from pipecat.workers.runner import WorkerRunner

SAMPLE_RATE_HZ = 24_000
IDS = {"response_id": "resp_B9xkRQ0123456789abcde", "item_id": "item_B9xkRQ0123456789abcde"}


class RealtimeJsonSerializer(FrameSerializer):
    def __init__(self) -> None:
        super().__init__()
        self._sent = 0

    async def serialize(self, frame: Frame) -> str | bytes | None:
        if not isinstance(frame, AudioRawFrame):
            return None
        self._sent += 1
        return json.dumps(
            {
                "type": "response.output_audio.delta",
                "event_id": f"event_{self._sent}",
                **IDS,
                "output_index": 0,
                "content_index": 0,
                "delta": base64.b64encode(frame.audio).decode("utf-8"),
            }
        )

    async def deserialize(self, data: str | bytes) -> Frame | None:
        message = json.loads(data)
        if message.get("type") != "input_audio_buffer.append":
            return None
        audio = base64.b64decode(message["audio"])
        return InputAudioRawFrame(audio=audio, num_channels=1, sample_rate=SAMPLE_RATE_HZ)


class Echo(FrameProcessor):
    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        if isinstance(frame, InputAudioRawFrame):
            frame = OutputAudioRawFrame(
                audio=frame.audio,
                sample_rate=frame.sample_rate,
                num_channels=frame.num_channels,
            )
        await self.push_frame(frame, direction)


app = FastAPI()


@app.websocket("/")
async def call(socket: WebSocket) -> None:
    await socket.accept()
    transport = FastAPIWebsocketTransport(
        socket,
        FastAPIWebsocketParams(
            audio_in_enabled=True,
            audio_out_enabled=True,
            add_wav_header=False,
            serializer=RealtimeJsonSerializer(),
        ),
    )
    worker = PipelineWorker(
        Pipeline([transport.input(), Echo(), transport.output()]),
        params=PipelineParams(
            audio_in_sample_rate=SAMPLE_RATE_HZ, audio_out_sample_rate=SAMPLE_RATE_HZ
        ),
    )

    @transport.event_handler("on_client_disconnected")
    async def on_client_disconnected(_transport: object, _client: object) -> None:
        await worker.cancel()

    runner = WorkerRunner(handle_sigint=False)
    await runner.add_workers(worker)
    await runner.run()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--ttl", type=int, default=120, help="seconds until it stops by itself")
    args = parser.parse_args()
    signal.alarm(args.ttl)
    logger.remove()
    logger.add(sys.stderr, level="ERROR")
    uvicorn.run(
        app,
        host="127.0.0.1",
        port=args.port,
        log_level="warning",
        ws_ping_interval=None,
        ws_per_message_deflate=False,
        lifespan="off",
        backlog=4096,
    )


if __name__ == "__main__":
    main()
