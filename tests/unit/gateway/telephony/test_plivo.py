from __future__ import annotations

import json
from typing import ClassVar

import pytest

from duologue.gateway.telephony.carrier import CallStarted
from duologue.gateway.telephony.plivo import Plivo
from tests.unit.gateway.telephony.carrier_contract import CarrierContract, said

FORMAT = {"encoding": "audio/x-mulaw", "sampleRate": 8000}
STARTED = {
    "callId": "c1",
    "streamId": "s1",
    "accountId": "a",
    "tracks": ["inbound"],
    "mediaFormat": FORMAT,
}
START = {"event": "start", "start": STARTED, "extra_headers": "{voice=two,empty=}"}


class TestPlivo(CarrierContract):
    carrier = Plivo()
    start: ClassVar = START
    started = CallStarted("s1", "c1", "audio/pcmu", {"voice": "two", "empty": ""})
    mark_played: ClassVar = {"event": "playedStream", "streamId": "s1", "name": "heard-7"}
    other_format: ClassVar = START | {
        "start": STARTED | {"mediaFormat": FORMAT | {"encoding": "audio/x-l16"}}
    }


@pytest.mark.parametrize("headers", ["", "{}", "nothing", ","])
def test_headers_that_hold_nothing_are_no_parameters(headers: str) -> None:
    started = said(Plivo(), START | {"extra_headers": headers})
    assert isinstance(started, CallStarted)
    assert started.parameters == {}


def test_what_is_sent_is_what_plivo_documents() -> None:
    plivo = Plivo()
    assert json.loads(plivo.sound("s1", b"\xff\x00")) == {
        "event": "playAudio",
        "streamId": "s1",
        "media": {"contentType": "audio/x-mulaw", "sampleRate": 8000, "payload": "/wA="},
    }
    mark = {"event": "checkpoint", "streamId": "s1", "name": "m"}
    assert json.loads(plivo.mark("s1", "m")) == mark
    assert json.loads(plivo.clear("s1")) == {"event": "clearAudio", "streamId": "s1"}
