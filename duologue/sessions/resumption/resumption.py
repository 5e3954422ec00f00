"""Resumption: what lets a session outlive its connections, joined with the session's machine.

Keeps the lease and the journal, and says what the next connection is told before the session goes
on. This module must not know connections or the engine.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from dataclasses import dataclass

from duologue.codecs.opus_packets import CLOCK_HZ, duration_samples, split
from duologue.protocol.duplex.format_names import SAMPLE_BYTES
from duologue.protocol.errors import ErrorCode, refused
from duologue.protocol.events import Event, SessionCreated
from duologue.protocol.response_events import FormattedAudioDelta
from duologue.sessions.history.inheritance import Inheritance
from duologue.sessions.machine import SessionMachine
from duologue.sessions.port import UNNUMBERED, Delivery
from duologue.sessions.resumption.journal import Gap, Journal
from duologue.sessions.resumption.lease import Claim, Lease, LeaseState, TokenMaker
from duologue.sessions.resumption.resume_wire import created, replaced, resumed, resync
from duologue.sessions.speaking.output_buffer import booked_bytes

_ENDED = LeaseState.ENDED
"""Compared with for every frame, and members of an enumeration are slow to look up."""


@dataclass(frozen=True, slots=True)
class ResumeTerms:
    """Under what terms sessions outlive their connections.

    Args:
        grace_s: How long one waits for another connection.
        max_bytes: What the journal and the output buffer may hold together.
        new_token: Maker of tokens.
    """

    grace_s: float
    max_bytes: int
    new_token: TokenMaker


class Resumption:
    """One session's.

    Args:
        acknowledges: The client says what it has received, so that the rest can be sent again.
            Without that it may only attach again.
        inherited: The conversation that the session goes on with.
    """

    __slots__ = (
        "_confirms_at",
        "_first",
        "_greeting",
        "_inherited",
        "_machine",
        "_resumed_at",
        "_token_maker",
        "due",
        "journal",
        "lease",
    )

    def __init__(
        self,
        machine: SessionMachine,
        terms: ResumeTerms,
        *,
        acknowledges: bool,
        inherited: Inheritance | None = None,
    ) -> None:
        machine.outlive()
        self._machine = machine
        self._inherited = inherited
        self._token_maker = terms.new_token
        token = terms.new_token()
        self._first: str | None = token
        """What the first connection is told; it is not kept."""

        self.lease = Lease(token, terms.grace_s)
        self.due = False
        """Something comes before what the machine has to say."""

        self.journal: Journal | None = None
        if acknowledges:
            self.journal = Journal(terms.max_bytes, machine.speaking.buffer)
            machine.kept_by(self.journal)
        self._greeting: deque[Event] = deque()
        self._resumed_at = 0
        self._confirms_at: float = 0
        """A later number shows that the client has the latest token; infinite: it is shown."""

    def deliver(self, deliveries: list[Delivery]) -> None:
        """Keep what is sent now until the client has it.

        The greeting gets the token, which nobody else is to see: no machine, journal or recording.
        """
        kept = deliveries
        if self._first is not None and deliveries:
            greeting = deliveries[0].event
            assert isinstance(greeting, SessionCreated), "it comes first"
            told = created(greeting.session, self._first, self.lease.generation, self._inherited)
            deliveries[0] = Delivery(deliveries[0].seq, told)
            self._first, kept = None, deliveries[1:]
        if self.journal is not None and self.lease.state is not _ENDED:
            self.journal.record(kept)

    def end(self, *, attached: bool) -> None:
        """The session is over: nobody comes any more.

        Args:
            attached: Somebody is still to hear what was missed.
        """
        self.lease.end()
        if self.journal is not None and not attached:
            self.journal.clear()

    def on_acknowledged(self, seq: int) -> None:
        """The client has everything up to a number."""
        if self.journal is not None:
            self.journal.acknowledge(seq)
        if seq > self._confirms_at:
            # It reads the connection on which it was told the latest token.
            self.lease.tokens.confirm()
            self._confirms_at = math.inf

    def check(self, received: int, latest: int) -> None:
        """Refuse a number that cannot be; ``latest`` is that of the latest event.

        Raises:
            ProtocolError: Nothing with this number was sent, or nothing can be sent again.
        """
        if self.journal is None:
            raise refused(
                "this session was not opened as a duplex session: connect with "
                "?session_id=&resume_token= instead",
                "session_id",
                ErrorCode.RESUME_UNSUPPORTED,
            )
        if not 0 <= received <= latest:
            raise refused(
                f"last_received_server_event_seq is {received}, the latest event is {latest}",
                "last_received_server_event_seq",
                ErrorCode.INVALID_RESUME,
            )

    def take(
        self,
        claim: Claim,
        received: int | None,
        now: float,
        latest: int,
        last_event_id: str | None,
    ) -> Event | None:
        """Hand the session to another connection, and get ready what that one is told.

        Args:
            received: The number of the latest event that the client has; ``None``: it does not
                say, and goes on with what comes.
            latest: The number of the latest event that there is.
            last_event_id: The client's own name for the latest message that it gave one.

        Returns:
            The last words to the connection before, where it understands any.

        Raises:
            ProtocolError: The lease has changed hands meanwhile. Nothing changed.
        """
        machine, token = self._machine, self._token_maker()
        generation = self.lease.take(claim, token)
        self._first = None
        self.due = True
        self._greeting.clear()
        self._confirms_at = self._resumed_at
        if self.journal is None or received is None:
            machine.reattach(now)
            self._greeting.append(created(machine.resource(), token, generation))
            return None
        next_sample = machine.extras.next_sample()
        self._greeting.append(
            resumed(machine.resource(), token, generation, next_sample, last_event_id)
        )
        machine.reattach(now, self._rewind(self.journal, received, latest, now))
        return replaced(machine.id, generation)

    def pull(self, max_bytes: int, now: float, *, latest: int) -> list[Delivery]:
        """Return what comes before what the machine has to say; about ``max_bytes`` at most.

        What is new among it is numbered on from ``latest``.
        """
        deliveries: list[Delivery] = []
        journal = self.journal
        while self._greeting:
            seq = UNNUMBERED
            if journal is None:
                seq = latest = latest + 1
            deliveries.append(Delivery(seq, self._greeting.popleft()))
        room = max_bytes
        if journal is not None and journal.broken_off:
            # The new connection reads so slowly that there was no room for what it waits for.
            journal.broken_off = False
            state = self._resync(journal, self._resumed_at, latest, now)
            deliveries.append(Delivery(UNNUMBERED, state))
        while journal is not None and journal.replaying and room > 0:
            delivery = journal.replay()
            room -= booked_bytes(delivery.event)
            deliveries.append(delivery)
        self.due = journal is not None and (journal.replaying or journal.broken_off)
        return deliveries

    def _rewind(
        self, journal: Journal, received: int, latest: int, now: float
    ) -> list[tuple[str, float]]:
        """Get ready what is sent again; returns the sound in it: items and seconds."""
        received = max(received, journal.acknowledged)
        journal.acknowledge(received)
        self._resumed_at = self._confirms_at = received
        journal.rewind(received)
        if journal.after(received) is not Gap.NONE:
            self._greeting.append(self._resync(journal, received, latest, now))
        return _sound_of(journal)

    def _resync(self, journal: Journal, received: int, latest: int, now: float) -> Event:
        machine = self._machine
        gap = journal.after(received)
        if gap is Gap.EVENTS:
            journal.clear()
        following_s: defaultdict[str, float] = defaultdict(float)
        for item_id, seconds in _sound_of(journal):
            following_s[item_id] += seconds
        return resync(
            machine.resource(),
            gap,
            machine.history,
            machine.speaking,
            latest,
            now,
            following_s,
        )


def _sound_of(journal: Journal) -> list[tuple[str, float]]:
    """Return the sound that is still to be sent again: items and seconds, in order."""
    return [
        (event.item_id, _seconds(event))
        for event in journal.still_to_replay()
        if isinstance(event, FormattedAudioDelta)
    ]


def _seconds(sound: FormattedAudioDelta) -> float:
    if sound.format == "opus":
        return duration_samples(split(sound.delta)) / CLOCK_HZ
    return len(sound.delta) / SAMPLE_BYTES[sound.format] / sound.sample_rate_hz
