"""What a pipeline that speaks offers to clients, as a model of the pipeline's name.

This module must not know how anything is spoken.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

Voice = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]


class SpeechOffer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Its voices, and how slow and fast it speaks by itself.

    Args:
        voices: Names that its runner knows; the first speaks where a client asks for none.
        answers: It takes a conversation and answers it, in text and in speech, rather than being
            given a text to speak.
        sees, hears: An answering one takes pictures, and recordings as they are: not as the words
            that a recogniser finds in them.
        slowest, fastest: Speeds, 1 being its own. Others are reached by stretching what it says.
    """

    voices: Annotated[tuple[Voice, ...], msgspec.Meta(min_length=1, max_length=1024)]
    answers: bool = False
    sees: bool = False
    hears: bool = False
    slowest: Annotated[float, msgspec.Meta(gt=0, le=1)] = 1.0
    fastest: Annotated[float, msgspec.Meta(ge=1, le=4)] = 1.0
