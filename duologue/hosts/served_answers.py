"""The answers that a session host keeps, for one gateway that is elsewhere.

This module must not know links, nor requests.
"""

from __future__ import annotations

from duologue.hosts.answer_questions import (
    AnswerQuestion,
    AnswerReply,
    AskAnswer,
    AskKeepAnswer,
    AskKeepSpoken,
    AskSpoken,
    Kept,
    KnownAnswer,
    Spoken,
)
from duologue.hosts.answers import AnswersPort


class ServedAnswers:
    """One gateway's; what it had begun to answer when it was lost may be sent again."""

    def __init__(self, answers: AnswersPort) -> None:
        self._answers = answers
        self._begun: set[str] = set()
        self._lost = False

    async def answer(self, question: AnswerQuestion) -> AnswerReply:
        """Answer a question.

        Raises:
            DuologueError: As ``AnswersPort``.
        """
        match question:
            case AskAnswer(key=key, fingerprint=fingerprint):
                known = await self._answers.begin(key, fingerprint)
                if known is None:
                    self._begun.add(key)
                    if self._lost:
                        self.failed(key)
                return KnownAnswer(known)
            case AskKeepAnswer(key=key, answer=answer):
                # Of a link that was lost meanwhile it is another's to make by now.
                if key in self._begun:
                    self._begun.remove(key)
                    await self._answers.done(key, answer)
                return Kept()
            case AskKeepSpoken(answer_id=answer_id, text=text, expires_at=expires_at):
                await self._answers.keep_spoken(answer_id, text, expires_at)
                return Kept()
            case AskSpoken(answer_id=answer_id):
                return Spoken(await self._answers.spoken(answer_id))

    def failed(self, key: str) -> None:
        """A request was not answered."""
        if key in self._begun:
            self._begun.remove(key)
            self._answers.failed(key)

    def lost(self) -> None:
        """The gateway is gone: it answers nothing any more."""
        self._lost = True
        for key in list(self._begun):
            self.failed(key)
