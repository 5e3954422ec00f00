from __future__ import annotations

import json
from typing import ClassVar

import pytest

from duologue.gateway.telephony.carrier import CallStarted, Sound
from duologue.gateway.telephony.telnyx import Telnyx
from tests.unit.gateway.telephony.carrier_contract import CarrierContract, said

FORMAT = {"encoding": "PCMU", "sample_rate": 8000, "channels": 1}
STARTED = {
    "user_id": "u",
    "call_control_id": "v3:c",
    "custom_parameters": {"voice": "two"},
    "media_format": FORMAT,
}
START = {"event": "start", "sequence_number": "1", "start": STARTED, "stream_id": "32de"}


class TestTelnyx(CarrierContract):
    carrier = Telnyx()
    number = 1
    start: ClassVar = START
    started = CallStarted("32de", "v3:c", "audio/pcmu", {"voice": "two"})
    mark_played: ClassVar = {"event": "mark", "stream_id": "32de", "mark": {"name": "heard-7"}}
    other_format: ClassVar = START | {
        "start": STARTED | {"media_format": FORMAT | {"encoding": "G722"}}
    }


def test_a_call_in_a_law_stays_in_a_law() -> None:
    start = {"media_format": FORMAT | {"encoding": "PCMA"}}
    started = said(Telnyx(), {"event": "start", "stream_id": "s", "start": start})
    assert started == CallStarted("s", "", "audio/pcma", {})


@pytest.mark.parametrize("chunk", [None, "", "x", "-1", "²", "9" * 40])
def test_a_place_that_cannot_be_read_is_none(chunk: object) -> None:
    media = {"track": "inbound", "payload": "", "chunk": chunk}
    assert said(Telnyx(), {"event": "media", "media": media}) == Sound(b"")


def test_what_is_sent_is_what_telnyx_documents() -> None:
    telnyx = Telnyx()
    media = {"event": "media", "media": {"payload": "/wA="}}
    assert json.loads(telnyx.sound("s", b"\xff\x00")) == media
    assert json.loads(telnyx.mark("s", "m")) == {"event": "mark", "mark": {"name": "m"}}
    assert json.loads(telnyx.clear("s")) == {"event": "clear"}
