from __future__ import annotations

import asyncio
from typing import cast

from duologue.gateway.ws.reading_gate import ReadingGate


class FakeTransport:
    def __init__(self) -> None:
        self.calls: list[str] = []
        self.closing = False

    def is_closing(self) -> bool:
        return self.closing

    def pause_reading(self) -> None:
        assert not self.closing
        self.calls.append("pause")

    def resume_reading(self) -> None:
        assert not self.closing
        self.calls.append("resume")


def gate_of(transport: FakeTransport) -> ReadingGate:
    return ReadingGate(cast(asyncio.Transport, transport))


def test_reading_goes_on_when_the_last_reason_is_gone_in_whichever_order() -> None:
    transport = FakeTransport()
    gate = gate_of(transport)
    gate.hold("turn")
    gate.hold("pressure")
    gate.release("turn")
    assert (gate.is_shut, transport.calls) == (True, ["pause"])
    gate.hold("turn")
    gate.release("pressure")
    assert gate.is_shut
    gate.release("turn")
    assert (gate.is_shut, transport.calls) == (False, ["pause", "resume"])


def test_a_reason_counts_once() -> None:
    transport = FakeTransport()
    gate = gate_of(transport)
    gate.release("turn")
    gate.hold("turn")
    gate.hold("turn")
    gate.release("turn")
    gate.release("turn")
    assert transport.calls == ["pause", "resume"]


def test_a_transport_that_closes_is_left_alone() -> None:
    transport = FakeTransport()
    gate = gate_of(transport)
    gate.hold("turn")
    transport.closing = True
    gate.release("turn")
    gate.hold("pressure")
    assert transport.calls == ["pause"]
