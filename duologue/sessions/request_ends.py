"""Who is told that a request to the engine has ended, and how.

This module must not know what follows from it.
"""

from __future__ import annotations

from duologue.duplex_plugins.contract import RequestEnded, RequestFailed
from duologue.engines.ports import Ended, Outcome
from duologue.sessions.dialogue.dialogue import Dialogue
from duologue.sessions.hearing.person import Person
from duologue.sessions.requests import Asker, Requests, RunningRequest


def tell_of_end(
    request: RunningRequest,
    event: Ended,
    requests: Requests,
    dialogue: Dialogue,
    person: Person,
    now: float,
) -> None:
    """Tell the part of the session whose request it was."""
    requests.ended(request)
    match request.asker:
        case Asker.PLUGIN if event.outcome is Outcome.FAILED:
            dialogue.tell(RequestFailed(request.key, event.code), now)
        case Asker.PLUGIN:
            dialogue.tell(RequestEnded(request.key), now)
        case Asker.DETECTOR:
            person.detector_ended(event.code)
        case Asker.TRANSCRIBER:
            person.recogniser_ended(request.key, event.code, now)
        case Asker.END_OF_TURN if event.outcome is Outcome.FAILED:
            # The turn ends all the same, at the silence that ends it anyway.
            requests.report(request.asker, event.code)
        case Asker.END_OF_TURN:
            pass
