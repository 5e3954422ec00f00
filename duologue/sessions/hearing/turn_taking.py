"""Turn-taking: edges of the person's floor, seen against what the assistant is doing.

Joins the floor with the overlap decision and says what follows: a turn is confirmed, pauses,
resumes, is committed, or was none. This module must not know how an answer is stopped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from duologue.sessions.hearing.floor import (
    EndOfTurnWanted,
    FloorEvent,
    SpeechBegan,
    SpeechPaused,
    SpeechResumed,
    TurnOver,
)
from duologue.sessions.hearing.listening import Listening, PersonTurn, Utterance
from duologue.sessions.hearing.overlap import Overlap, OverlapDecision, decide


@dataclass(frozen=True, slots=True)
class Answering:
    """What the assistant is doing at this moment.

    Args:
        active: A response of the conversation is going on, or its playback.
        audible: Some of it was heard.
    """

    active: bool
    audible: bool


@dataclass(frozen=True, slots=True)
class TurnConfirmed:
    """The person has the floor. With ``interrupts`` the answer must stop."""

    turn: PersonTurn
    interrupts: bool


@dataclass(frozen=True, slots=True)
class TurnPausing:
    """The turn may be over at ``sample``."""

    turn: PersonTurn
    sample: int


@dataclass(frozen=True, slots=True)
class TurnResumed:
    """It was not over."""

    turn: PersonTurn
    sample: int


@dataclass(frozen=True, slots=True)
class TurnCommitted:
    """The turn is over."""

    utterance: Utterance


@dataclass(frozen=True, slots=True)
class TurnDropped:
    """It was too short to interrupt the answer, and is over: no turn."""

    speech_ms: int


TurnEvent = TurnDropped | TurnConfirmed | TurnPausing | TurnResumed | TurnCommitted


class TurnTaking:
    """Decides, window by window, what the person's speech means."""

    def __init__(self, listening: Listening, min_interruption_ms: int) -> None:
        self._listening = listening
        self.min_interruption_ms = min_interruption_ms

    def on_floor(
        self, events: Iterable[FloorEvent], answering: Answering, interrupts: bool
    ) -> Iterator[TurnEvent]:
        """Take what one detector window led to; yields what follows from it, in order.

        Args:
            events: May be empty: an unconfirmed turn is looked at anew at every window.
            answering: The assistant's side right now.
            interrupts: The session's ``interrupt_response``.
        """
        listening = self._listening
        for event in events:
            match event:
                case SpeechBegan(start_sample=start):
                    listening.begin(start)
                    yield from self._reconsider(answering, interrupts)
                case SpeechPaused(end_sample=sample):
                    listening.pause(sample)
                    if listening.turn is not None and listening.turn.confirmed:
                        yield TurnPausing(listening.turn, sample)
                case SpeechResumed(sample=sample):
                    listening.resume()
                    if listening.turn is not None and listening.turn.confirmed:
                        yield TurnResumed(listening.turn, sample)
                case EndOfTurnWanted(sample=sample):
                    if listening.turn is not None and listening.turn.confirmed:
                        listening.ask_end_of_turn(sample)
                case TurnOver(end_sample=sample):
                    if listening.turn is not None and listening.turn.confirmed:
                        yield TurnCommitted(listening.commit(sample))
                    else:
                        if answering.active and listening.turn is not None:
                            yield TurnDropped(listening.speech_ms)
                        listening.abandon()
        yield from self._reconsider(answering, interrupts)

    def _reconsider(self, answering: Answering, interrupts: bool) -> Iterator[TurnEvent]:
        turn = self._listening.turn
        if turn is None or turn.confirmed:
            return
        decision = decide(
            Overlap(
                answering=answering.active,
                audible=answering.audible,
                speech_ms=self._listening.speech_ms,
                interrupts=interrupts,
                min_interruption_ms=self.min_interruption_ms,
            )
        )
        if decision is not OverlapDecision.WAIT:
            self._listening.confirm(turn)
            yield TurnConfirmed(turn, interrupts=decision is OverlapDecision.INTERRUPT)
