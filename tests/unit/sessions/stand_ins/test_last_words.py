from __future__ import annotations

from duologue.protocol.commands import ClearAudio
from duologue.protocol.duplex.events import SessionReplaced
from duologue.protocol.events import ErrorBody
from duologue.sessions.port import Delivery
from duologue.sessions.stand_ins.last_words import LastWords
from tests.fakes.call import FakeCall
from tests.fakes.plugin import FakePlugin


def test_the_last_words_are_said_once_and_nothing_is_heard() -> None:
    words = Delivery(0, SessionReplaced(session_id="s", attachment_generation=2))
    left = LastWords([words])
    call = FakeCall(FakePlugin())
    left.attach(call.client)
    left.offer(ClearAudio())
    left.reject(ErrorBody(type="invalid_request_error", message="no"))
    left.played("item", 100)
    assert left.pull(1).deliveries == [words]
    assert left.pull(1).deliveries == []
    left.detach(call.client)
    assert call.client.ended is None
