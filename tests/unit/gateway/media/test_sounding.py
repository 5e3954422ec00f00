from __future__ import annotations

import io

import numpy as np
import pytest
import soundfile

from duologue.codecs.containers import OutputFormat
from duologue.core.clock import SystemClock
from duologue.core.errors import EngineError
from duologue.core.ids import id_maker
from duologue.engines.media_payloads import MakeSound, SoundData, StepsDone
from duologue.engines.payloads import Payload
from duologue.engines.ports import Ended, Outcome, Output, Request, Subscriber
from duologue.gateway.media.sounding import sound_file, sounds
from duologue.gateway.route_requests import RouteRequests
from tests.fakes.engine import FakeEngine

ASK = MakeSound("rain", 0.5, 4, 3.5, 7)
RUN = SoundData(b"\x01\x00\x02\x00", 16_000, 2)


class Sounding(FakeEngine):
    """Gives every request the same outputs at once."""

    def __init__(self, *payloads: Payload) -> None:
        super().__init__(pipelines=("rain",))
        self.payloads = payloads

    def submit(self, request: Request, subscriber: Subscriber) -> None:
        super().submit(request, subscriber)
        for payload in self.payloads:
            subscriber.on_engine_event(Output(request.id, request.fence, payload))
        subscriber.on_engine_event(Ended(request.id, request.fence, Outcome.COMPLETED))


def client(*payloads: Payload) -> RouteRequests:
    return RouteRequests(Sounding(*payloads), SystemClock(), id_maker(), 10)


async def test_the_runs_of_a_sound_are_one_recording() -> None:
    made = await sounds(client(StepsDone(1, 4), RUN, RUN), "rain", [ASK, ASK])
    assert made == [SoundData(2 * RUN.pcm, 16_000, 2)] * 2
    assert await sounds(client(RUN), "rain", [ASK]) == [RUN]


async def test_a_pipeline_that_gives_no_sound_has_failed() -> None:
    with pytest.raises(EngineError, match="no sound"):
        await sounds(client(StepsDone(4, 4)), "rain", [ASK])


async def test_a_file_has_the_channels_of_the_sound() -> None:
    samples = np.arange(2_000, dtype="<i2").reshape(-1, 2)
    file = await sound_file(SoundData(samples.tobytes(), 44_100, 2), OutputFormat.WAV)
    read, rate = soundfile.read(io.BytesIO(file), dtype="int16")
    assert rate == 44_100
    assert np.array_equal(read, samples)
    with pytest.raises(EngineError, match="3 channels"):
        await sound_file(SoundData(samples.tobytes(), 44_100, 3), OutputFormat.WAV)
