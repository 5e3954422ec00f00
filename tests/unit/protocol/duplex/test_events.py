from __future__ import annotations

from typing import get_args

from duologue.protocol.duplex.events import DuplexEvent, SessionClosed
from duologue.protocol.events import RealtimeEvent
from duologue.protocol.json_codec import encode_event


def test_no_event_of_the_dialect_has_the_name_of_a_realtime_event() -> None:
    realtime = {member.__struct_config__.tag for member in get_args(RealtimeEvent)}
    ours = {member.__struct_config__.tag for member in get_args(DuplexEvent)}
    assert len(ours) == len(get_args(DuplexEvent))
    assert not realtime & ours


def test_a_stock_client_gets_none_of_them() -> None:
    assert encode_event(SessionClosed(session_id="s", reason="r"), 1) is None
