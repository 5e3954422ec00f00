"""No stale frame after an interruption: random callers, connections and frames of a lockstep model.

Each loud frame says its own number in its samples, so that what reaches the client can be told
apart.
"""

from __future__ import annotations

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from duologue.core.audio import SAMPLE_BYTES
from duologue.duplex_plugins.lockstep.plugin import LockstepModel, LockstepPlugin
from duologue.duplex_plugins.lockstep.settings import LockstepSettings
from duologue.engines.payloads import (
    AudioChunk,
    LockstepFrame,
    LockstepFreeze,
    LockstepRewind,
    LockstepStart,
)
from duologue.protocol.append_audio import AppendAudio
from duologue.protocol.commands import CancelResponse, CreateResponse, TruncateItem
from duologue.protocol.duplex.commands import AcknowledgeEvents, BargeIn
from duologue.protocol.duplex.session_patch import DuplexPatch
from duologue.protocol.events import ErrorEvent
from duologue.protocol.response_events import AudioDelta, ResponseDone
from duologue.sessions.speaking.response import ResponseState
from tests.fakes.call import FakeCall
from tests.fakes.engine import FakeEngine, FakeRequest

PIPELINE = "model"
FRAME_SAMPLES = 1920
FRAME_S = 0.08
SETTINGS = LockstepSettings(pause_ms=160, hold_ms=640, end_ms=400, answer_ms=800)


def sound(number: int) -> bytes:
    return (1000 + number).to_bytes(2, "little") * FRAME_SAMPLES


class Worker:
    """The model's side of one stream, as a worker keeps it."""

    def __init__(self, request: FakeRequest) -> None:
        self.request = request
        self.read = 0
        self.number = 0
        self.rewinds = 0
        self.frozen = False
        self.on_its_way: list[LockstepFrame] = []

    def take_in(self) -> None:
        for payload in self.request.inputs[self.read :]:
            match payload:
                case LockstepRewind(frame=frame):
                    assert frame <= self.number
                    self.rewinds += 1
                case LockstepFreeze(frozen=frozen):
                    self.frozen = frozen
                case LockstepStart() | AudioChunk():
                    pass
                case _:
                    raise AssertionError(f"{payload} is nothing for this stage")
        self.read = len(self.request.inputs)

    def tick(self, speaks: bool) -> None:
        self.take_in()
        if not self.frozen:
            pcm = sound(self.number) if speaks else bytes(FRAME_SAMPLES * SAMPLE_BYTES)
            codes = (self.number % 2048,)
            frame = LockstepFrame(self.number, pcm, "", 3, codes, codes, self.rewinds)
            self.on_its_way.append(frame)
            self.number += 1


class LockstepCall(RuleBasedStateMachine):
    """What was interrupted is not heard again, whatever is on its way."""

    @initialize()
    def call_begins(self) -> None:
        engine = FakeEngine(pipelines=(PIPELINE,))
        plugin = LockstepPlugin(LockstepModel(pipeline=PIPELINE), SETTINGS)
        self.call = FakeCall(plugin, engine, patch=DuplexPatch(), resumable=True)
        self.workers: dict[str, Worker] = {}
        self.dead_below = 0
        """Frames before this one may never be heard from now on."""
        self.read = 0
        self.voice: dict[str, list[int]] = {}
        self.call.send(AppendAudio(audio=bytes(480)))
        self.tick(True, 0)

    def worker(self) -> Worker:
        (request,) = self.call.engine.of(PIPELINE)
        return self.workers.setdefault(request.request.id, Worker(request))

    @rule(speaks=st.booleans(), late=st.integers(0, 2))
    def tick(self, speaks: bool, late: int) -> None:
        """The next tick; up to so many frames stay on their way."""
        worker = self.worker()
        self.call.clock.advance(FRAME_S)
        worker.tick(speaks)
        while len(worker.on_its_way) > late:
            frame = worker.on_its_way.pop(0)
            self.call.engine.output(worker.request.request.id, frame)
        if self.call.client.reading and not self.call.client.gone:
            self.call.client.read()
        self.listen()

    @rule(frames=st.integers(2, 8))
    def speaks_for_a_while(self, frames: int) -> None:
        for _ in range(frames):
            self.tick(True, 0)

    @rule(frames=st.integers(2, 6))
    def pauses(self, frames: int) -> None:
        for _ in range(frames):
            self.tick(False, 0)

    @precondition(lambda self: not self.call.client.gone)
    @rule(kind=st.sampled_from(["cancel", "barge_in", "ask"]), on_the_way=st.integers(0, 3))
    def interrupt(self, kind: str, on_the_way: int) -> None:
        for _ in range(on_the_way):
            self.tick(True, on_the_way)
        self.listen()
        active = self.call.machine.speaking.active
        match kind:
            case "cancel":
                self.call.send(CancelResponse())
            case "barge_in":
                self.call.send(BargeIn())
            case _:
                self.call.send(CreateResponse())
                return
        if active is not None and active.state is ResponseState.SPEAKING:
            # What was made by now is of the sentence that was cut off. (One that was said to its
            # end and is still being sent is no unfinished one.)
            self.dead_below = max(self.dead_below, self.worker().number)

    @precondition(lambda self: self.voice and not self.call.client.gone)
    @rule(heard_ms=st.integers(0, 2000))
    def truncate(self, heard_ms: int) -> None:
        self.listen()
        worker, rewinds = self.worker(), self.worker().rewinds
        delta = self.call.client.of(AudioDelta)[-1]
        self.call.send(TruncateItem(item_id=delta.item_id, content_index=0, audio_end_ms=heard_ms))
        made = worker.number
        worker.take_in()
        if worker.rewinds > rewinds:
            # What is on its way was made by a model that still knew what nobody heard.
            self.dead_below = max(self.dead_below, made)

    @precondition(lambda self: not self.call.client.gone)
    @rule()
    def stop_reading(self) -> None:
        self.call.client.reading = not self.call.client.reading
        if self.call.client.reading:
            self.call.client.read()
        self.listen()

    @precondition(lambda self: not self.call.client.gone)
    @rule()
    def lose_the_connection(self) -> None:
        self.call.client.reading = True
        self.call.lose()

    @precondition(lambda self: self.call.client.gone)
    @rule()
    def come_back(self) -> None:
        client = self.call.resume()
        client.read()
        self.listen()

    @precondition(lambda self: not self.call.client.gone)
    @rule()
    def acknowledge(self) -> None:
        self.call.send(AcknowledgeEvents(server_event_seq=self.call.client.received))

    def listen(self) -> None:
        """Look at all sound that has come, and at what it is made of."""
        deltas = self.call.client.of(AudioDelta)
        for delta in deltas[self.read :]:
            frames = self.voice.setdefault(delta.response_id, [])
            samples = np.frombuffer(delta.delta, "<i2")
            for level in samples[np.flatnonzero(np.diff(samples, prepend=0))].tolist():
                number = level - 1000
                if level and (not frames or frames[-1] != number):
                    assert number >= self.dead_below, f"frame {number} was interrupted"
                    assert not frames or number > frames[-1], "out of order"
                    frames.append(number)
        self.read = len(deltas)

    @invariant()
    def the_model_is_never_far_ahead(self) -> None:
        if hasattr(self, "call"):
            speaking = self.call.machine.speaking
            now = self.call.clock.now()
            assert speaking.playback.lead_s(now) <= SETTINGS.lead_ms / 1000 + 1e-6
            # Three more may come before the worker has heard that nobody takes them.
            assert speaking.buffer.speech_ms <= SETTINGS.backlog_ms + 4 * 80

    @invariant()
    def no_frame_is_in_two_answers(self) -> None:
        if hasattr(self, "call"):
            seen = [number for frames in self.voice.values() for number in frames]
            assert len(seen) == len(set(seen))

    @invariant()
    def nobody_is_blamed(self) -> None:
        if hasattr(self, "call"):
            for error in self.call.client.of(ErrorEvent):
                assert error.error.type == "invalid_request_error", error
            for done in self.call.client.of(ResponseDone):
                assert done.response.status != "failed", done


TestLockstepCall = LockstepCall.TestCase
# A step is up to eight ticks: fewer steps, or a push would wait for minutes.
TestLockstepCall.settings = settings(max_examples=80, stateful_step_count=30)
