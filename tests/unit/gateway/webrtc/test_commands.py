from __future__ import annotations

import pytest

from duologue.core.errors import ClientError
from duologue.gateway.webrtc.commands import check_command, check_patch
from duologue.protocol.commands import UpdateSession
from duologue.protocol.json_codec import decode_command


def update(audio: str) -> bytes:
    return b'{"type":"session.update","session":{"audio":%b}}' % audio.encode()


@pytest.mark.parametrize(
    ("message", "param"),
    [
        (b'{"type":"input_audio_buffer.append","audio":"AAAA"}', "type"),
        (update('{"input":{"format":{"type":"audio/pcmu"}}}'), "session.audio.input.format"),
        (update('{"output":{"format":{"type":"audio/pcma"}}}'), "session.audio.output.format"),
        (
            update('{"output":{"format":{"type":"audio/pcm","rate":16000}}}'),
            "session.audio.output.format",
        ),
        (
            b'{"type":"response.create","response":{"audio":{"output":{"format":'
            b'{"type":"audio/pcmu"}}}}}',
            "response.audio.output.format",
        ),
    ],
)
def test_c31_what_the_offer_settles_cannot_be_changed(message: bytes, param: str) -> None:
    command = decode_command(message)
    with pytest.raises(ClientError) as caught:
        check_command(command, has_track=True)
    assert (caught.value.code, caught.value.param) == ("unsupported", param)
    check_command(command, has_track=False)


@pytest.mark.parametrize(
    "message",
    [
        b'{"type":"response.create"}',
        b'{"type":"response.create","response":{}}',
        b'{"type":"response.create","response":{"audio":{}}}',
        b'{"type":"response.create","response":{"audio":{"output":{"voice":"alloy"}}}}',
        b'{"type":"output_audio_buffer.clear"}',
        update("null"),
        update("{}"),
        update('{"input":null,"output":{}}'),
        update('{"input":{"format":null}}'),
        update('{"input":{"format":{"type":"audio/pcm","rate":24000}},"output":{"voice":"x"}}'),
        update('{"output":{"format":{"type":"audio/pcm"}}}'),
    ],
)
def test_everything_else_passes(message: bytes) -> None:
    check_command(decode_command(message), has_track=True)


def test_the_settings_of_the_beginning_are_held_to_the_same() -> None:
    command = decode_command(update('{"input":{"format":{"type":"audio/pcmu"}}}'))
    assert isinstance(command, UpdateSession)
    with pytest.raises(ClientError, match=r"the offer settles the codec"):
        check_patch(command.session)
