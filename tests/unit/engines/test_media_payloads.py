from __future__ import annotations

import msgspec

from duologue.engines.media_payloads import DrawImage, LoraChoice
from duologue.engines.payloads import Payload


def test_results_and_requests_are_among_all_payloads() -> None:
    ask = DrawImage("a cat", 64, 48, 4, 3.5, 7, lora=LoraChoice("ink", 0.5), image=b"\x89PNG")
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(ask), type=Payload) == ask
