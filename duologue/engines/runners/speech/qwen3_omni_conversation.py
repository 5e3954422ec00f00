"""Reads a conversation for Qwen3-Omni's thinker: its template's text, and what is seen and heard.

This module must not know what is done with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

import msgspec

from duologue.codecs.pcm import pcm_to_float
from duologue.core.audio import SAMPLE_BYTES
from duologue.core.errors import ConfigError, EngineError
from duologue.engines.models.checkpoint_folder import CheckpointFolder
from duologue.engines.payloads import ChatRequest
from duologue.engines.runners.llm.chat_chunk import REQUEST_REFUSED
from duologue.engines.runners.llm.template_messages import pictures_of
from duologue.engines.runners.speech.chat_template import ChatTemplate
from duologue.engines.runners.speech.loading import TorchSettings
from duologue.engines.runners.speech.qwen3_omni_prompt import OmniPrompt
from duologue.engines.runners.speech.qwen3_omni_senses import HEARD_RATE_HZ, Ears, Eyes, Sensed
from duologue.engines.runners.speech.text_tokens import load_tokenizer

AUDIO, IMAGE = "<|audio_pad|>", "<|image_pad|>"


class SensesSettings(TorchSettings, frozen=True, kw_only=True):
    """Settings of what a conversation may hold beside words.

    Args:
        pictures: How many a conversation may have; 0: it sees none, and the encoder stays away.
        picture_pixels: Of one picture.
        recordings_s: How long those of a conversation may last; 0: likewise.
    """

    pictures: Annotated[int, msgspec.Meta(ge=0, le=256)] = 4
    picture_pixels: Annotated[int, msgspec.Meta(ge=1, le=1 << 30)] = 1 << 25
    recordings_s: Annotated[float, msgspec.Meta(ge=0, le=3600)] = 300.0


class Conversation:
    """Reads one after another.

    Raises:
        ConfigError: The checkpoint lacks a template, or what encodes pictures or recordings.
    """

    def __init__(self, folder: CheckpointFolder, settings: SensesSettings) -> None:
        self._settings = settings
        self._eyes = Eyes(folder) if settings.pictures else None
        self._ears = Ears(folder) if settings.recordings_s else None
        self._template = ChatTemplate.read(folder.path)
        self.tokenizer = load_tokenizer(folder.path)
        self._signs = {
            token.content: number
            for number, token in self.tokenizer.get_added_tokens_decoder().items()
            if token.special
        }
        for sign in (*([AUDIO] if self._ears else ()), *([IMAGE] if self._eyes else ())):
            number = self.tokenizer.token_to_id(sign)
            if number is None:
                raise ConfigError(
                    f"tokenizer.json has no {sign}: this is no Qwen3-Omni that senses"
                )
            self._signs[sign] = number
        # What a person writes is never a sign of the conversation's own.
        self.tokenizer.encode_special_tokens = True

    def read(self, request: ChatRequest) -> OmniPrompt:
        """Return what the model reads before its answer.

        Raises:
            EngineError: There is more to be seen or heard than is allowed, or the template takes
                no such conversation.
        """
        pictures, recordings = iter(self._seen(request)), iter(self._heard(request))
        prompt = OmniPrompt()
        for text, is_sign in self._template.write(request, list(self._signs)):
            if not is_sign:
                prompt.words(self.tokenizer.encode(text, add_special_tokens=False).ids)
            elif text == IMAGE and (picture := next(pictures, None)) is not None:
                prompt.sensed(picture, self._signs[text])
            elif text == AUDIO and (recording := next(recordings, None)) is not None:
                prompt.sensed(recording, self._signs[text])
            else:
                prompt.words([self._signs[text]])
        if _is_left(pictures) or _is_left(recordings):
            raise EngineError(
                "the model's template has no place for a picture or a recording",
                code=REQUEST_REFUSED,
            )
        return prompt

    def _seen(self, request: ChatRequest) -> Sequence[Sensed]:
        settings, eyes = self._settings, self._eyes
        pictures = pictures_of(request, settings.pictures, settings.picture_pixels)
        return [] if eyes is None else [eyes.see(pixels) for pixels in pictures]

    def _heard(self, request: ChatRequest) -> Sequence[Sensed]:
        recordings = [pcm for message in request.messages for pcm in message.recordings]
        duration_s = sum(map(len, recordings)) / (SAMPLE_BYTES * HEARD_RATE_HZ)
        if duration_s > self._settings.recordings_s or (recordings and self._ears is None):
            raise EngineError(
                f"the recordings last {duration_s:.0f} s, this model hears "
                f"{self._settings.recordings_s:g} s",
                code=REQUEST_REFUSED,
            )
        return [] if self._ears is None else [self._ears.hear(pcm_to_float(p)) for p in recordings]


def _is_left(sensed: Iterator[Sensed]) -> bool:
    return next(sensed, None) is not None
