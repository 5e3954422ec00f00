from __future__ import annotations

from duologue.protocol.duplex.session_resource import DuplexSessionResource
from duologue.protocol.session_config import SessionResource


def test_a_duplex_session_shows_all_that_a_realtime_session_shows() -> None:
    realtime = set(SessionResource.__struct_fields__)
    assert realtime < set(DuplexSessionResource.__struct_fields__)
