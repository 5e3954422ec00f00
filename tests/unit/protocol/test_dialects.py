from __future__ import annotations

import pytest

from duologue.protocol.dialect import Dialect
from duologue.protocol.dialects import DIALECTS
from duologue.protocol.events import AudioCleared
from duologue.protocol.response_events import AudioDelta

DELTA = AudioDelta(response_id="r", item_id="i", output_index=0, content_index=0, delta=b"\0\1")


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=map(str, DIALECTS))
def test_each_writes_what_every_client_knows(dialect: Dialect) -> None:
    assert dialect.encode_event(AudioCleared(), 1)
    assert dialect.encode_event(DELTA, 2)


def test_each_knows_its_family_and_no_two_are_the_same() -> None:
    assert [dialect.family for dialect in DIALECTS.values()] == [family for family, _ in DIALECTS]
    assert len(set(map(id, DIALECTS.values()))) == len(DIALECTS)
