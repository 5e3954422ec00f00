"""What holds for every carrier, however it writes things."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec
import pytest

from duologue.core.errors import ClientError
from duologue.gateway.telephony.carrier import (
    CallEnded,
    CallStarted,
    Carrier,
    CarrierMessage,
    KeyPressed,
    MarkPlayed,
    Sound,
)


def said(carrier: Carrier, message: Any) -> CarrierMessage | None:
    return carrier.decode(msgspec.json.encode(message))


class CarrierContract:
    """Subclasses name a carrier, and write the examples of its documentation."""

    carrier: Carrier
    number: int | None = None
    """Of chunk 1, where the carrier does not keep the order."""

    start: ClassVar[dict[str, Any]]
    started: CallStarted
    mark_played: ClassVar[dict[str, Any]]
    other_format: ClassVar[dict[str, Any]]

    def test_a_call_begins_with_what_is_known_of_it(self) -> None:
        assert said(self.carrier, self.start) == self.started

    def test_sound_of_the_caller_is_taken_and_other_tracks_are_not(self) -> None:
        media = {"track": "inbound", "timestamp": "20", "chunk": "1", "payload": "//8A"}
        sound = said(self.carrier, {"event": "media", "media": media})
        assert sound == Sound(b"\xff\xff\x00", self.number)
        outbound = {"event": "media", "media": media | {"track": "outbound"}}
        assert said(self.carrier, outbound) is None

    def test_keys_marks_and_the_end(self) -> None:
        dtmf = {"event": "dtmf", "dtmf": {"track": "inbound_track", "digit": "5"}}
        assert said(self.carrier, dtmf) == KeyPressed("5")
        assert said(self.carrier, self.mark_played) == MarkPlayed("heard-7")
        assert said(self.carrier, {"event": "stop", "stop": {}}) == CallEnded()

    def test_what_is_new_or_says_nothing_is_passed_over(self) -> None:
        for event in ("connected", "something_new", ""):
            assert said(self.carrier, {"event": event, "more": [1]}) is None

    def test_another_format_is_refused_with_what_to_set(self) -> None:
        with pytest.raises(ClientError) as caught:
            said(self.carrier, self.other_format)
        assert caught.value.code == "unsupported"

    @pytest.mark.parametrize("message", [b"", b"[]", b"null", b"{", b"\xff", b'{"event":1}'])
    def test_nonsense_is_refused(self, message: bytes) -> None:
        with pytest.raises(ClientError):
            self.carrier.decode(message)
