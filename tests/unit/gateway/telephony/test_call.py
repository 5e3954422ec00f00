"""A call without sockets: what the caller hears, and what the session is told of it."""

from __future__ import annotations

import base64
import json
from typing import Any

from duologue.core.errors import CapacityError
from duologue.core.wheel import TimerWheel
from duologue.gateway.telephony.call import NOT_STARTED, PhoneCall
from duologue.gateway.telephony.carrier import CallStarted
from duologue.gateway.telephony.settings import TelephonySettings
from duologue.gateway.telephony.terms import terms_of_call
from duologue.gateway.telephony.twilio import Twilio
from duologue.sessions.session import Session
from tests.cases.talk import DETECTING, READS, Talk

TEN_WORDS = "one two three four five six seven eight nine ten"
LEAD_MS = 200


class FakeChannel:
    """The carrier's end of the connection."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.closed: list[tuple[int, str]] = []
        self.full = False

    def can_send(self) -> bool:
        return not self.full and not self.closed

    def send(self, message: bytes) -> None:
        self.sent.append(json.loads(message))

    def close(self, code: int, reason: str) -> None:
        self.closed.append((code, reason))

    def of(self, event: str) -> list[dict[str, Any]]:
        return [message for message in self.sent if message["event"] == event]


class Phone:
    """A phone call into a scene of ``Talk``."""

    def __init__(self, *, greeting: str = "", refuses: CapacityError | None = None) -> None:
        self.talk = Talk(DETECTING, READS)
        self.clock = self.talk.clock
        self.channel = FakeChannel()
        self.session: Session | None = None
        self.wheel = TimerWheel(self.clock.call_at)
        settings = TelephonySettings(
            greeting=greeting, lead_ms=LEAD_MS, start_timeout_s=5, keypad_pause_s=2
        )

        def open_session(start: CallStarted) -> tuple[Session, str]:
            if refuses is not None:
                raise refuses
            terms = terms_of_call(settings, None, start.parameters, start.format)
            self.session = self.talk.manager.open(terms.model, patch=terms.patch, edge_plays=True)
            return self.session, terms.greeting

        self.call = PhoneCall(
            self.channel, Twilio(), open_session, settings, self.clock, self.wheel
        )
        self.call._set_timer()

    def tell(self, event: str, **content: Any) -> None:
        self.call._on_message(json.dumps({"event": event, **content}).encode())

    def start(self) -> None:
        self.tell("start", start={"streamSid": "MZ1"})

    def speak(self, frames: int) -> None:
        """Say something, in real time, and let the detector find it."""
        for _ in range(frames):
            payload = base64.b64encode(b"\x00" * 160).decode()
            self.tell("media", media={"payload": payload})
            self.clock.advance(0.02)

    def answered(self, ms: int = 10_000) -> None:
        """Let the model speak ten words."""
        self.tell("dtmf", dtmf={"digit": "#"})
        self.talk.answer(TEN_WORDS, ms)

    def heard_ms(self) -> int:
        return (
            sum(len(base64.b64decode(m["media"]["payload"])) for m in self.channel.of("media")) // 8
        )

    def answer_marks(self, count: int) -> None:
        for mark in self.channel.of("mark")[:count]:
            self.tell("mark", mark=mark["mark"])

    def texts(self) -> list[str]:
        assert self.session is not None
        return [view.text or "" for view in self.session.machine.history.view()]


def test_speech_is_paced_out_by_the_lead_and_marked() -> None:
    phone = Phone()
    phone.start()
    phone.answered()
    assert phone.heard_ms() == LEAD_MS
    phone.clock.advance(1.0)
    assert LEAD_MS + 1000 <= phone.heard_ms() <= LEAD_MS + 1040
    assert len(phone.channel.of("mark")) == phone.heard_ms() // 100
    assert {message["streamSid"] for message in phone.channel.sent} == {"MZ1"}
    assert phone.channel.of("clear") == []


def test_an_interruption_clears_and_history_ends_where_the_last_mark_was_heard() -> None:
    phone = Phone()
    phone.start()
    phone.answered()
    phone.clock.advance(4.0)
    phone.answer_marks(31)
    before = phone.heard_ms()
    phone.tell("dtmf", dtmf={"digit": "#"})
    assert len(phone.channel.of("clear")) == 1
    assert phone.channel.sent[-1]["event"] == "clear"
    phone.clock.advance(1.0)
    assert phone.heard_ms() == before
    assert "one two three" in phone.texts()
    # What the carrier says of the marks that it forgot changes nothing.
    phone.answer_marks(99)
    assert "one two three" in phone.texts()


def test_an_answer_that_is_made_and_still_plays_is_cut_too() -> None:
    phone = Phone()
    phone.start()
    phone.answered(2_000)
    phone.talk.finish()
    phone.clock.advance(0.5)
    phone.answer_marks(4)
    phone.tell("dtmf", dtmf={"digit": "#"})
    assert len(phone.channel.of("clear")) == 1
    assert "one two" in phone.texts()


def test_what_is_typed_is_said_and_answered_after_a_pause() -> None:
    phone = Phone()
    phone.start()
    for digit in "42":
        phone.tell("dtmf", dtmf={"digit": digit})
    phone.clock.advance(1.9)
    assert phone.texts() == []
    phone.clock.advance(0.2)
    (text,) = phone.texts()
    assert "42" in text
    assert len(phone.talk.plugin.prompts) == 1


def test_it_greets_where_it_is_told_to() -> None:
    phone = Phone(greeting="Say hello.")
    phone.start()
    assert len(phone.talk.plugin.prompts) == 1
    phone.talk.answer("Hello", 300)
    phone.talk.finish()
    phone.clock.advance(1)
    assert phone.heard_ms() == 300
    quiet = Phone()
    quiet.start()
    assert quiet.talk.plugin.prompts == []


def test_a_connection_that_takes_nothing_loses_nothing() -> None:
    phone = Phone()
    phone.start()
    phone.channel.full = True
    phone.answered()
    phone.clock.advance(0.5)
    assert phone.heard_ms() == 0
    phone.channel.full = False
    phone.clock.advance(0.5)
    assert phone.heard_ms() > LEAD_MS


def test_one_message_that_cannot_be_read_costs_nothing() -> None:
    phone = Phone()
    phone.start()
    for message in (b"{", b'{"event":"media","media":{"payload":"?"}}', b"[]"):
        phone.call._on_message(message)
    assert phone.channel.closed == []
    phone.answered()
    assert phone.heard_ms() == LEAD_MS
    phone.start()  # a second time means nothing
    assert phone.channel.closed == []


def test_before_the_call_began_it_ends_the_connection() -> None:
    phone = Phone()
    phone.call._on_message(b"{")
    ((code, reason),) = phone.channel.closed
    assert code == 1008
    assert "JSON" in reason


def test_sound_before_the_start_is_nobodys() -> None:
    phone = Phone()
    phone.speak(3)
    phone.tell("mark", mark={"name": "heard-1"})
    assert phone.session is None
    assert phone.channel.closed == []


def test_a_carrier_that_never_starts_is_given_up() -> None:
    phone = Phone()
    phone.clock.advance(4.9)
    assert phone.channel.closed == []
    phone.clock.advance(0.2)
    assert phone.channel.closed == [(1008, NOT_STARTED)]


def test_a_server_that_is_full_says_that_it_is_worth_another_try() -> None:
    phone = Phone(refuses=CapacityError("200 of 200 on host-7", retry_after_s=5))
    phone.start()
    ((code, reason),) = phone.channel.closed
    assert code == 1013
    assert "host-7" not in reason


def test_the_end_of_the_session_is_the_end_of_the_call() -> None:
    phone = Phone()
    phone.start()
    assert phone.session is not None
    phone.session.close("session_expired")
    assert phone.channel.closed[0][0] == 1001


def test_hanging_up_ends_the_session() -> None:
    phone = Phone()
    phone.start()
    open_before = len(phone.talk.manager)
    phone.tell("stop")
    assert phone.channel.closed == [(1000, "")]
    phone.call._hang_up()
    assert len(phone.talk.manager) == open_before - 1
    assert len(phone.wheel) == 0
