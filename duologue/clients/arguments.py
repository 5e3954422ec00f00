"""What programs hand to a call, checked at the door: a mistake is told before anything is sent.

This module must not know what is done with it.
"""

from __future__ import annotations

from duologue.core.errors import CodecError

_FILE_MAGIC = {b"RIFF": "WAV", b"fLaC": "FLAC", b"OggS": "Ogg", b"ID3": "MP3"}
"""How files begin that people take for samples. As sound, each would be a click and then noise."""


def checked_text(text: object) -> str:
    """Return what is to be typed.

    Raises:
        TypeError: It is no text.
    """
    if not isinstance(text, str):
        raise TypeError(f"the text must be a str, not {type(text).__name__}")
    return text


def checked_bytes(data: object, name: str) -> bytes:
    """Return bytes; those that may still be changed are copied.

    Args:
        name: What they are, for the error.

    Raises:
        TypeError: They are none.
    """
    if isinstance(data, bytes):
        return data
    if isinstance(data, bytearray | memoryview):
        return bytes(data)
    hint = "; to send a file, read it first" if isinstance(data, str) else ""
    raise TypeError(f"{name} must be bytes, not {type(data).__name__}{hint}")


def checked_pcm(pcm: object) -> bytes:
    """Return samples: s16le mono at 24 kHz.

    Raises:
        TypeError: They are no bytes.
    """
    return checked_bytes(pcm, "audio (s16le mono at 24 kHz)")


def checked_recording(pcm: object) -> bytes:
    """Return the samples of one turn: s16le mono at 24 kHz.

    Only whole recordings are looked at for the mark of a file: a chunk of a stream may begin with
    any samples.

    Raises:
        TypeError: They are no bytes.
        CodecError: They are a file.
    """
    data = checked_pcm(pcm)
    for magic, kind in _FILE_MAGIC.items():
        if data.startswith(magic):
            raise CodecError(
                f"this is {kind} file data, not samples (s16le mono at 24 kHz). Read a WAV file "
                "with duologue.clients.read_wav(path); make one of any other file with: "
                "ffmpeg -i FILE -c:a pcm_s16le question.wav"
            )
    return data
