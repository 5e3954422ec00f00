"""What gateways ask the session host about answers that are kept, and the replies.

As the methods of ``hosts.answers.AnswersPort``. This module must not know how messages travel.
"""

from __future__ import annotations

from typing import TypeAlias

from duologue.hosts.link_struct import LinkStruct


class AskAnswer(LinkStruct, frozen=True):
    """Was a request answered before, or shall I? Answered by ``KnownAnswer``."""

    key: str
    fingerprint: bytes


class AskKeepAnswer(LinkStruct, frozen=True):
    """Keep the answer of a request that was mine to make. Answered by ``Kept``."""

    key: str
    answer: bytes


class AskKeepSpoken(LinkStruct, frozen=True):
    """Remember what was said. Answered by ``Kept``."""

    answer_id: str
    text: str
    expires_at: int


class AskSpoken(LinkStruct, frozen=True):
    """What was said? Answered by ``Spoken``."""

    answer_id: str


AnswerQuestion: TypeAlias = AskAnswer | AskKeepAnswer | AskKeepSpoken | AskSpoken


class KnownAnswer(LinkStruct, frozen=True):
    """The answer; ``None``: it is yours to make."""

    answer: bytes | None


class Kept(LinkStruct, frozen=True):
    """It was kept."""


class Spoken(LinkStruct, frozen=True):
    """What was said; ``None``: nobody remembers."""

    text: str | None


AnswerReply: TypeAlias = KnownAnswer | Kept | Spoken
