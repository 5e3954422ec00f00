"""Messages as bytes, and how they are refused."""

from __future__ import annotations

import pytest

from duologue.core.errors import ClientError
from duologue.protocol.json_codec import (
    decode_command,
)

APPEND = b'{"type":"input_audio_buffer.append","audio":"'


def append(audio: bytes) -> bytes:
    return APPEND + audio + b'"}'


def refused(message: bytes | str) -> ClientError:
    with pytest.raises(ClientError) as caught:
        decode_command(message)
    return caught.value
