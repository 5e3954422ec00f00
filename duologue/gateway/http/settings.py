"""Settings of plain HTTP requests."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from duologue.config import Section

Seconds = Annotated[float, Field(gt=0, le=3600)]


class ClassWeights(Section):
    """How max_requests are shared out between classes of work, where there is more than one.

    What a class does not use is lent to others, but for half of its share.
    """

    interactive: Annotated[int, Field(ge=1, le=1000)] = 3
    """Chat completions, speech and its streams, transcription, robots."""

    batch: Annotated[int, Field(ge=1, le=1000)] = 1
    """Images and videos; jobs have places of this class, too."""


class HttpSettings(Section):
    """How much a plain HTTP request may send, and how long it may take."""

    max_body_bytes: Annotated[int, Field(ge=1024, le=1 << 30)] = 32 << 20
    """A request's body must be smaller: 25 MB of audio, also in base64, and what is around it."""

    max_requests: Annotated[int, Field(ge=1, le=10_000)] = 64
    """Requests that are worked on at the same time, of all gateways together, and WebSockets that
    are open and no calls; further ones are refused with 503."""

    queued_requests: Annotated[int, Field(ge=0, le=10_000)] = 0
    """Requests that may wait for one of these to end, where their clients ask for it with
    ``Prefer: wait=SECONDS``, or ``?wait=SECONDS`` for a WebSocket; 0: none wait."""

    class_weights: ClassWeights = ClassWeights()

    queue_timeout_s: Seconds = 30.0
    """No request waits for longer."""

    first_request_timeout_s: Seconds = 20.0
    """A connection that has not sent the head of its first request after so long is dropped, a
    call's too."""

    body_timeout_s: Seconds = 30.0
    """A client has so long to send its request."""

    request_timeout_s: Seconds = 120.0
    """Longest time for an answer, a streamed one to its end."""

    audio_timeout_s: Seconds = 900.0
    """The same for speech and transcription: a long text is listened to while it is spoken."""

    media_timeout_s: Seconds = 900.0
    """The same for images and videos, which may wait for those of others."""

    idempotency_s: Seconds = 3600.0
    """An answer to a request with an Idempotency-Key is kept for so long."""

    idempotency_keys: Annotated[int, Field(ge=1, le=1_000_000)] = 1024
    """So many such answers are kept."""

    idempotency_bytes: Annotated[int, Field(ge=0, le=1 << 40)] = 256 << 20
    """All such answers together may take so much memory."""

    silence_timeout_s: Seconds = 60.0
    """A model that has all it needs for an answer and says nothing for so long hangs: the request
    fails, and the model is started again."""

    max_speech_chars: Annotated[int, Field(ge=1, le=1_000_000)] = 20_000
    """Longest text that one request may have spoken: about 20 minutes."""

    speech_stream_idle_s: Seconds = 60.0
    """A speech stream whose client sends nothing for so long, and waits for nothing, is ended."""

    max_audio_file_bytes: Annotated[int, Field(ge=1024, le=1 << 30)] = 25 << 20
    """Largest audio file."""

    max_picture_pixels: Annotated[int, Field(ge=1, le=1 << 30)] = 1 << 25
    """Largest picture that a language model is shown, in a call too; told from its header."""

    max_audio_s: Annotated[float, Field(ge=1, le=86_400)] = 7200.0
    """Longest audio in a file."""

    max_output_tokens: Annotated[int, Field(ge=1, le=1 << 20)] = 2048
    """Longest answer of a chat completion; a client may ask for a shorter one."""

    stall_limit_s: Seconds = 60.0
    """A client that takes nothing of what is sent to it for so long is let go. Players that have
    enough for now read no further for a while."""

    keep_alive_s: Seconds = 5.0
    """A comment goes into an event stream that was silent for so long: proxies cut silent ones."""

    default_model_for: tuple[str, ...] = (
        "gpt-*",
        "chatgpt-*",
        "o1*",
        "o3*",
        "o4*",
        "tts-1*",
        "whisper-*",
        "dall-e-*",
        "sora-*",
    )
    """Model names, with ``*`` for any letters, that mean the first model here: stock clients have
    their vendor's names built in. Other names that are not ours get 404."""
