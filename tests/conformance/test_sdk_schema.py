"""The judge is judged: what no SDK declares must not pass for its dialect."""

from __future__ import annotations

import pytest

from tests.conformance.sdk_schema import BETA, GA, NotInTheSdk, SdkSchema

DELTA = (
    b'{"event_id":"event_1","type":"response.%b.delta","response_id":"r","item_id":"i",'
    b'"output_index":0,"content_index":0,"delta":"AAA="}'
)


def test_names_of_one_dialect_are_unknown_in_the_other() -> None:
    GA.check(DELTA % b"output_audio")
    BETA.check(DELTA % b"audio")
    with pytest.raises(NotInTheSdk):
        GA.check(DELTA % b"audio")
    with pytest.raises(NotInTheSdk):
        BETA.check(DELTA % b"output_audio")


@pytest.mark.parametrize("schema", [GA, BETA], ids=["ga", "beta"])
@pytest.mark.parametrize(
    "message",
    [
        b'{"type":"input_audio_buffer.cleared","event_id":7}',
        b'{"type":"input_audio_buffer.cleared"}',
        b'{"type":"input_audio_buffer.cleared","event_id":"e","more":1}',
        b'{"type":"error","event_id":"e","error":{"type":"t","message":"m","more":1}}',
        b'{"type":"duologue.event","event_id":"e"}',
    ],
)
def test_a_wrong_type_a_missing_key_and_a_key_too_many_are_found(
    schema: SdkSchema, message: bytes
) -> None:
    with pytest.raises((NotInTheSdk, ValueError)):
        schema.check(message)
