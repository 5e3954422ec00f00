from __future__ import annotations

import email
import io
import wave
from email.message import Message

import pytest

from duologue.core.errors import EngineError
from duologue.engines.runners.asr.upload import (
    RepliedWord,
    Reply,
    transcription_form,
    transcription_reply,
    wav_file,
)


def parts_of(content_type: str, body: bytes) -> dict[str, Message]:
    """Read a form with the parser of the standard library."""
    message = email.message_from_bytes(f"Content-Type: {content_type}\r\n\r\n".encode() + body)
    found = {}
    for part in message.get_payload():
        assert isinstance(part, Message)
        name = part.get_param("name", header="content-disposition")
        found[str(name)] = part
    return found


def test_the_wav_file_holds_the_samples() -> None:
    pcm = bytes(range(200))
    with wave.open(io.BytesIO(wav_file(pcm, 16_000))) as reader:
        assert (reader.getframerate(), reader.getnchannels(), reader.getsampwidth()) == (
            16_000,
            1,
            2,
        )
        assert reader.readframes(1000) == pcm


def test_the_form_holds_the_file_and_the_fields() -> None:
    wav = b"RIFF\r\n--\r\n\x00\xff"
    form = transcription_form(wav, {"model": "tiny", "language": "en"})
    parts = parts_of(form.content_type, form.body)
    assert list(parts) == ["model", "language", "file"]
    assert parts["model"].get_payload(decode=True) == b"tiny"
    assert parts["file"].get_payload(decode=True) == wav
    assert parts["file"].get_content_type() == "audio/wav"
    assert parts["file"].get_filename() == "speech.wav"


def test_the_text_is_taken_from_the_answer() -> None:
    answer = b'{"text": " Hello there. ", "usage": {"seconds": 1}}'

    assert transcription_reply(answer) == Reply("Hello there.")


def test_words_are_taken_with_their_times() -> None:
    reply = transcription_reply(
        b'{"text": "Hi", "words": [{"word": "Hi", "start": 0, "end": 0.5}]}'
    )

    assert reply.words == [RepliedWord("Hi", 0, 0.5)]


def test_nothing_in_the_form_can_end_it() -> None:
    first = transcription_form(b"wav", {"prompt": "one"})
    other = transcription_form(b"wav", {"prompt": "two"})

    assert first.content_type != other.content_type


@pytest.mark.parametrize("answer", [b"", b"<html>", b'{"words": []}', b'{"text": 1}', b'"\xff"'])
def test_another_answer_is_an_error_that_shows_it(answer: bytes) -> None:
    with pytest.raises(EngineError, match="no transcription") as caught:
        transcription_reply(answer)
    assert caught.value.code == "upstream_failed"
