"""Who is told that a request to the engine has ended, and how.

This module must not know what follows from it.
"""

from __future__ import annotations

from duologue.duplex_plugins.contract import RequestEnded, RequestFailed
from duologue.engines.ports import Ended, Outcome
from duologue.sessions.dialogue.dialogue import Dialogue
from duologue.sessions.hearing.person import Person
from duologue.sessions.streams import Owner, Stream, Streams


def tell_of_end(
    stream: Stream, event: Ended, streams: Streams, dialogue: Dialogue, person: Person, now: float
) -> None:
    """Tell the part of the session whose request it was."""
    streams.ended(stream)
    match stream.owner:
        case Owner.PLUGIN if event.outcome is Outcome.FAILED:
            dialogue.tell(RequestFailed(stream.key, event.code), now)
        case Owner.PLUGIN:
            dialogue.tell(RequestEnded(stream.key), now)
        case Owner.DETECTOR:
            person.detector_ended(event.code)
        case Owner.TRANSCRIBER:
            person.recogniser_ended(stream.key, event.code, now)
        case Owner.END_OF_TURN if event.outcome is Outcome.FAILED:
            # The turn ends all the same, at the silence that ends it anyway.
            streams.report(stream.owner, event.code)
        case Owner.END_OF_TURN:
            pass
