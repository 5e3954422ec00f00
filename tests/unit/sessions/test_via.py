"""How a client came in."""

from __future__ import annotations

from duologue.protocol.dialects import DIALECTS as SPOKEN
from duologue.sessions.via import DIALECT_LABELS, SOCKET, TRANSPORTS, Via
from duologue.telemetry import LabelSets
from tests.fakes.call import FakeCall
from tests.fakes.plugin import FakePlugin


def test_every_dialect_that_is_spoken_has_its_name_in_the_figures() -> None:
    assert {dialect.family for dialect in SPOKEN.values()} <= set(DIALECT_LABELS)
    assert SOCKET.transport in TRANSPORTS
    assert SOCKET.dialect in DIALECT_LABELS


def test_calls_are_counted_while_they_are_open() -> None:
    call = FakeCall(
        FakePlugin(),
        labels=LabelSets(plugins=("model",), transports=TRANSPORTS, dialects=DIALECT_LABELS),
    )
    phone = call.manager.open(None, via=Via("telephony", "carrier"))
    active = call.metrics.calls_active
    assert active["telephony", "carrier"].value == 1
    assert active["websocket", "realtime"].value == 1
    phone.close("closed")
    assert active["telephony", "carrier"].value == 0
