from __future__ import annotations

import msgspec

from duologue.engines.input_size import INPUT_OVERHEAD_BYTES, input_bytes
from duologue.engines.payloads import Payload
from duologue.engines.policy_payloads import DecideActions


def test_an_observation_weighs_what_it_holds() -> None:
    ask = DecideActions((bytes(100), bytes(50)), bytes(8), "fold", 10, 7)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(ask), type=Payload) == ask
    assert input_bytes(ask) == INPUT_OVERHEAD_BYTES + 162
