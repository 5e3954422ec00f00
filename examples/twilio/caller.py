"""Call a Duologue server as Twilio would, without a telephone: say a file, keep what comes back.

duologue serve                                        # in another terminal
python examples/twilio/caller.py question.flac answer.wav
"""

import asyncio
import base64
import json
import os
import sys

import soundfile
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosedError

from duologue.codecs.g711 import decode_ulaw, encode_ulaw
from duologue.codecs.resample import StreamResampler

BASE_URL = os.environ.get("DUOLOGUE_URL", "http://localhost:8080").replace("http", "ws", 1)
RATE_HZ = 8000
FRAME_BYTES = 160  # 20 ms of mu-law
BEFORE_S, AFTER_S = 4, 5  # for the greeting, and for the answer


def read_ulaw(path: str) -> bytes:
    """Return a mono file of 16 bits as a telephone sends it."""
    samples, rate_hz = soundfile.read(path, dtype="int16")
    resampler = StreamResampler(rate_hz, RATE_HZ)
    return encode_ulaw(resampler.process(samples.tobytes()) + resampler.flush())


async def hold_call(question: bytes) -> bytes:
    """Say ``question`` in real time; return what was heard, in mu-law."""
    silence = encode_ulaw(bytes(2 * RATE_HZ))
    sound = BEFORE_S * silence + question + AFTER_S * silence
    heard = b""
    async with connect(f"{BASE_URL}/v1/telephony/twilio/stream") as phone:
        start = {
            "streamSid": "MZ1",
            "callSid": "CA1",
            "mediaFormat": {"encoding": "audio/x-mulaw", "sampleRate": RATE_HZ, "channels": 1},
            "customParameters": {"key": os.environ.get("DUOLOGUE_API_KEY", "")},
        }
        await phone.send(json.dumps({"event": "start", "streamSid": "MZ1", "start": start}))

        async def speak() -> None:
            for at in range(0, len(sound), FRAME_BYTES):
                payload = base64.b64encode(sound[at : at + FRAME_BYTES]).decode()
                media = {"event": "media", "streamSid": "MZ1", "media": {"payload": payload}}
                await phone.send(json.dumps(media))
                await asyncio.sleep(FRAME_BYTES / RATE_HZ)
            await phone.close()

        async with asyncio.TaskGroup() as group:
            group.create_task(speak())
            async for message in phone:
                match json.loads(message):
                    case {"event": "media", "media": {"payload": payload}}:
                        heard += base64.b64decode(payload)
                    case {"event": "mark"}:
                        await phone.send(message)  # so much was played
    return heard


def call(question: bytes) -> bytes:
    """Return what was heard; a call that the server ends is explained by its last words."""
    try:
        return asyncio.run(hold_call(question))
    except* ConnectionClosedError as closed:
        sys.exit(f"the server ended the call: {closed.exceptions[0]}")


if __name__ == "__main__":
    answer = decode_ulaw(call(read_ulaw(sys.argv[1])))
    with soundfile.SoundFile(sys.argv[2], "w", RATE_HZ, 1, "PCM_16", format="WAV") as file:
        file.buffer_write(answer, dtype="int16")
    print(f"{len(answer) / 2 / RATE_HZ:.1f} s of the server's voice are in {sys.argv[2]}")
