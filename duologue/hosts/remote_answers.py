"""The answers that a session host keeps, at the other end of a link; an ``AnswersPort``.

This module must not know links, nor requests.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from duologue.core.errors import LimitExceeded
from duologue.hosts.answer_questions import (
    AskAnswer,
    AskKeepAnswer,
    AskKeepSpoken,
    AskSpoken,
    KnownAnswer,
    Spoken,
)
from duologue.hosts.messages import AnswerFailed
from duologue.hosts.questions import Question, Reply


class AskHost(Protocol):
    """Asks the host."""

    def __call__(
        self, question: Question, unwanted: Callable[[Reply], None] | None = None
    ) -> Awaitable[Reply]:
        """As ``LinkEnd.ask``."""
        ...


class RemoteAnswers:
    """The answers of one host.

    Args:
        tell: Tells the host, if there is a link.
    """

    def __init__(self, ask: AskHost, tell: Callable[[AnswerFailed], None]) -> None:
        self._ask = ask
        self._tell = tell

    async def begin(self, key: str, fingerprint: bytes) -> bytes | None:
        """Return the answer to a request that was made before; ``None``: it is to be made now."""

        def unwanted(reply: Reply) -> None:
            # Whoever asked has left, so nobody here makes it.
            if isinstance(reply, KnownAnswer) and reply.answer is None:
                self.failed(key)

        reply = await self._ask(AskAnswer(key, fingerprint), unwanted)
        assert isinstance(reply, KnownAnswer), "each kind of question has one kind of answer"
        return reply.answer

    async def done(self, key: str, answer: bytes) -> None:
        """Keep the answer of a request; one that is too long for the link is not kept."""
        try:
            await self._ask(AskKeepAnswer(key, answer))
        except LimitExceeded:
            self.failed(key)

    def failed(self, key: str) -> None:
        """Forget a request that was not answered."""
        self._tell(AnswerFailed(key))

    async def keep_spoken(self, answer_id: str, text: str, expires_at: int) -> None:
        """Remember what was said."""
        await self._ask(AskKeepSpoken(answer_id, text, expires_at))

    async def spoken(self, answer_id: str) -> str | None:
        """Return what was said, unless it was forgotten."""
        reply = await self._ask(AskSpoken(answer_id))
        assert isinstance(reply, Spoken)
        return reply.text
