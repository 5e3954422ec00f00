from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.core.errors import ClientError, ProtocolError
from duologue.gateway.telephony.carrier import Carrier, CarrierMessage, read_payload, write_payload
from duologue.gateway.telephony.plivo import Plivo
from duologue.gateway.telephony.telnyx import Telnyx
from duologue.gateway.telephony.twilio import Twilio

MESSAGES = st.dictionaries(
    st.sampled_from(["event", "start", "media", "mark", "dtmf", "name", "stream_id"]),
    st.recursive(
        st.none() | st.integers() | st.text() | st.sampled_from(["start", "media"]),
        lambda inner: st.dictionaries(
            st.sampled_from(["payload", "digit", "name", "streamSid", "track"]), inner
        ),
        max_leaves=6,
    ),
)


def test_sound_travels_as_base64() -> None:
    sound = bytes(range(256))
    assert read_payload(write_payload(sound)) == sound


@pytest.mark.parametrize("text", ["a", "AAAA AAAA", "ü", "_-"])
def test_what_is_no_base64_is_refused(text: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        read_payload(text)
    assert caught.value.code == "invalid_base64"


@given(st.sampled_from([Twilio(), Telnyx(), Plivo()]), MESSAGES)
def test_whatever_comes_is_read_or_refused(carrier: Carrier, message: dict[str, Any]) -> None:
    with suppress(ClientError):
        assert isinstance(carrier.decode(msgspec.json.encode(message)), CarrierMessage | None)
