"""A call in the duplex dialect, with a model that a test plays."""

from __future__ import annotations

from typing import Any

from duologue.engines.payloads import AudioChunk, TextDelta
from duologue.protocol.commands import CreateResponse
from duologue.protocol.duplex.session_patch import DuplexPatch
from duologue.protocol.duplex.session_resource import DuplexSessionResource
from duologue.protocol.events import (
    SessionUpdated,
)
from duologue.protocol.response_events import (
    ResponseCreated,
)
from tests.fakes.call import FakeCall
from tests.fakes.engine import FakeEngine
from tests.fakes.plugin import STAGE, FakePlugin

TONE = b"\x10\x00" * 2400
LOUD = b"\x00\x10" * 1600


def call(plugin: Any = None, **patch: Any) -> FakeCall:
    engine = FakeEngine(pipelines=(STAGE, "vad", "end_of_turn", "asr"))
    return FakeCall(plugin or FakePlugin(), engine, patch=DuplexPatch(**patch))


def shown(made: FakeCall) -> DuplexSessionResource:
    session = made.client.last(SessionUpdated).session
    assert isinstance(session, DuplexSessionResource)
    return session


def answered(made: FakeCall, *, whole: bool = False) -> str:
    """Let an answer begin to be heard; its id."""
    made.send(CreateResponse())
    (stage,) = made.engine.of(STAGE)
    made.engine.output(stage.request.id, TextDelta("Hello there."))
    made.engine.output(stage.request.id, AudioChunk(TONE * 20, 24000))
    if whole:
        made.engine.complete(stage.request.id)
    made.clock.advance(0.3)
    return made.client.last(ResponseCreated).response.id
