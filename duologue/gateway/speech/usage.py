"""What speaking and hearing count for, where clients want tokens: no model here has any of its own.

This module must not know models.
"""

from __future__ import annotations

import math

import msgspec

_CHARS_PER_TOKEN = 4
_OUTPUT_TOKENS_PER_S = 20
_INPUT_TOKENS_PER_S = 10


class InputTokenDetails(msgspec.Struct, frozen=True):
    """Of which kind the input was."""

    text_tokens: int = 0
    audio_tokens: int = 0


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """An estimate: a text token has 4 characters; a second of audio is 10 in, 20 out."""

    type: str = "tokens"
    input_tokens: int
    output_tokens: int
    total_tokens: int
    input_token_details: InputTokenDetails


def spoken_usage(text: str, seconds: float) -> Usage:
    """Return what speaking a text counts for."""
    read = text_tokens(text)
    made = math.ceil(seconds * _OUTPUT_TOKENS_PER_S)
    return _usage(InputTokenDetails(text_tokens=read), made)


def heard_usage(seconds: float, prompt: str, text: str) -> Usage:
    """Return what hearing some audio counts for."""
    heard = math.ceil(seconds * _INPUT_TOKENS_PER_S)
    return _usage(InputTokenDetails(text_tokens(prompt), heard), text_tokens(text))


def text_tokens(text: str) -> int:
    """Estimate the tokens of a text."""
    return math.ceil(len(text) / _CHARS_PER_TOKEN)


def _usage(details: InputTokenDetails, made: int) -> Usage:
    read = details.text_tokens + details.audio_tokens
    return Usage(
        input_tokens=read,
        output_tokens=made,
        total_tokens=read + made,
        input_token_details=details,
    )
