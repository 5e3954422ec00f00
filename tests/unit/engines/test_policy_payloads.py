from __future__ import annotations

import msgspec

from duologue.engines.payload_base import OVERHEAD_BYTES
from duologue.engines.payloads import Payload
from duologue.engines.policy_payloads import DecideActions


def test_an_observation_weighs_what_it_holds() -> None:
    ask = DecideActions((bytes(100), bytes(50)), bytes(8), "fold", 10, 7)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(ask), type=Payload) == ask
    assert OVERHEAD_BYTES + 162 <= ask.size_bytes() < 2 * OVERHEAD_BYTES
