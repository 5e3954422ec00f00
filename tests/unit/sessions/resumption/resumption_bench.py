"""A call that may be resumed, and what its client has heard."""

from __future__ import annotations

import struct

import pytest

from duologue.core.errors import ClientError
from duologue.engines.payloads import AudioChunk, TextDelta
from duologue.protocol.commands import (
    CreateResponse,
)
from duologue.protocol.duplex.session_patch import DuplexPatch
from duologue.protocol.response_events import (
    AudioDelta,
)
from duologue.sessions.settings import SessionSettings
from tests.fakes.call import FakeCall
from tests.fakes.engine import FakeEngine
from tests.fakes.plugin import STAGE, FakePlugin

MS = 24
"""Samples in a millisecond."""


def call(settings: SessionSettings | None = None, plugin: FakePlugin | None = None) -> FakeCall:
    engine = FakeEngine(pipelines=(STAGE, "vad", "end_of_turn", "asr"))
    return FakeCall(plugin or FakePlugin(), engine, settings, patch=DuplexPatch(), resumable=True)


def counting(start: int, samples: int) -> bytes:
    """Samples that are their own position."""
    numbers = (position % 32768 for position in range(start, start + samples))
    return struct.pack(f"<{samples}h", *numbers)


def answer(made: FakeCall, *, seconds: float = 5.0, whole: bool = False) -> str:
    made.send(CreateResponse())
    stage = made.engine.of(STAGE)[-1]
    made.engine.output(stage.request.id, TextDelta("One two three."))
    made.engine.output(stage.request.id, AudioChunk(counting(0, round(seconds * 24000)), 24000))
    if whole:
        made.engine.complete(stage.request.id)
    return stage.request.id


def heard(made: FakeCall) -> bytes:
    return b"".join(event.delta for event in made.client.of(AudioDelta))


def refusal(made: FakeCall, token: str | None = None, **how: object) -> str:
    with pytest.raises(ClientError) as refused:
        made.manager.claim(
            str(how.get("session_id", made.session.id)),
            token or made.client.token,
            how.get("owner", made.session.owner),  # type: ignore[arg-type]
            how.get("received", made.client.received),  # type: ignore[arg-type]
        )
    return str(refused.value.code)
