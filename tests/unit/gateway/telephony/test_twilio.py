from __future__ import annotations

import json
from typing import ClassVar

from duologue.gateway.telephony.carrier import CallStarted
from duologue.gateway.telephony.twilio import Twilio
from tests.unit.gateway.telephony.carrier_contract import CarrierContract

FORMAT = {"encoding": "audio/x-mulaw", "sampleRate": 8000, "channels": 1}
STARTED = {
    "streamSid": "MZ1",
    "accountSid": "AC1",
    "callSid": "CA1",
    "tracks": ["inbound"],
    "customParameters": {"voice": "two"},
    "mediaFormat": FORMAT,
}
START = {"event": "start", "sequenceNumber": "1", "start": STARTED, "streamSid": "MZ1"}


class TestTwilio(CarrierContract):
    carrier = Twilio()
    start: ClassVar = START
    started = CallStarted("MZ1", "CA1", "audio/pcmu", {"voice": "two"})
    mark_played: ClassVar = {"event": "mark", "streamSid": "MZ1", "mark": {"name": "heard-7"}}
    other_format: ClassVar = START | {
        "start": STARTED | {"mediaFormat": FORMAT | {"encoding": "audio/l16"}}
    }


def test_what_is_sent_is_what_twilio_documents() -> None:
    twilio = Twilio()
    assert json.loads(twilio.sound("MZ1", b"\xff\x00")) == {
        "event": "media",
        "streamSid": "MZ1",
        "media": {"payload": "/wA="},
    }
    mark = {"event": "mark", "streamSid": "MZ1", "mark": {"name": "heard-1"}}
    assert json.loads(twilio.mark("MZ1", "heard-1")) == mark
    assert json.loads(twilio.clear("MZ1")) == {"event": "clear", "streamSid": "MZ1"}
