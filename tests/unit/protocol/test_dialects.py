from __future__ import annotations

import pytest

from duologue.protocol.dialect import Dialect
from duologue.protocol.dialects import DIALECTS
from duologue.protocol.events import AudioCleared
from duologue.protocol.response_events import AudioDelta

DELTA = AudioDelta(response_id="r", item_id="i", output_index=0, content_index=0, delta=b"\0\1")


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=[d.name for d in DIALECTS.values()])
def test_each_writes_what_every_client_knows(dialect: Dialect) -> None:
    assert dialect.encode_event(AudioCleared(), 1)
    assert dialect.encode_event(DELTA, 2)


def test_each_has_a_name_of_its_own() -> None:
    names = [dialect.name for dialect in DIALECTS.values()]
    assert len(names) == len(set(names))
