"""What of a chat request cannot be carried out, said before any work begins.

This module must not know how an answer comes about.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from duologue.gateway.catalogue import ServedModel
from duologue.protocol.chat_request import ChatCompletionRequest, VoiceId
from duologue.protocol.errors import ErrorCode, refused

SpokenFormat = Literal["wav", "mp3", "flac", "opus", "aac", "pcm16"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the answer is to consist of.

    Args:
        text: Written; with ``audio``, as the transcript of speech.
        voice: The name that the client gave.
    """

    text: bool = True
    audio: bool = False
    voice: str | None = None
    format: SpokenFormat = "wav"


def check(asked: ChatCompletionRequest, model: ServedModel) -> Wanted:
    """Return what the answer is to consist of.

    Raises:
        ProtocolError: The model, or this server, cannot do it.
    """
    model.pipeline("chat")
    if asked.n is not None and asked.n != 1:
        raise refused(f"n is {asked.n}; this server gives 1 answer to a request", "n")
    if asked.logprobs or asked.top_logprobs:
        field = "logprobs" if asked.logprobs else "top_logprobs"
        raise refused(
            f"{field}: the models here do not tell probabilities; leave it out",
            field,
            ErrorCode.UNSUPPORTED,
        )
    if asked.stream_options is not None and not asked.stream:
        raise refused("stream_options is for answers with stream=true", "stream_options")
    modalities = asked.modalities or ("text",)
    if "audio" not in modalities:
        return Wanted()
    return _spoken(asked, model, modalities)


def _spoken(asked: ChatCompletionRequest, model: ServedModel, modalities: Sequence[str]) -> Wanted:
    if not model.answers_aloud:
        model.pipeline("speech", "modalities")
    audio = asked.audio
    usual: SpokenFormat = "pcm16" if asked.stream else "wav"
    audio_format = (audio.format if audio is not None else None) or usual
    if asked.stream and audio_format != "pcm16":
        raise refused(
            f"audio.format is {audio_format}; a streamed answer is spoken in pcm16 only",
            "audio.format",
        )
    if asked.tools and asked.tool_choice == "required":
        raise refused(
            "an answer that must be a function call cannot be spoken; leave audio out of "
            "modalities, or let tool_choice be auto",
            "tool_choice",
            ErrorCode.UNSUPPORTED,
        )
    voice = audio.voice if audio is not None else None
    return Wanted(
        text="text" in modalities,
        audio=True,
        voice=voice.id if isinstance(voice, VoiceId) else voice,
        format=audio_format,
    )
