"""What crosses between a session and a gateway can cross between processes."""

from __future__ import annotations

import msgspec

from duologue.protocol.events import AudioCleared, ItemDeleted
from duologue.sessions.port import Batch, Delivery


def test_deliveries_are_values_that_survive_a_link() -> None:
    batch = Batch([Delivery(1, ItemDeleted(item_id="a")), Delivery(2, AudioCleared())], False)
    sent = msgspec.msgpack.encode(batch)
    assert msgspec.msgpack.decode(sent, type=Batch) == batch
