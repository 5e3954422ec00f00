"""The parts of a session know those that they have to do with, and these are the same for all."""

from __future__ import annotations

import random
from dataclasses import replace

from duologue.core.ids import id_maker
from duologue.duplex_plugins.contract import Audio, Capabilities, ResponseRequested, SayText
from duologue.protocol.commands import CreateItem, CreateResponse
from duologue.protocol.duplex.config import DuplexConfig
from duologue.protocol.items import InputText, MessageItem
from duologue.protocol.response_events import AudioTranscriptDelta
from duologue.protocol.session_config import SessionConfig
from duologue.sessions.assembly import Parts, assembled
from duologue.sessions.dialect_extras import DialectExtras, DuplexExtras
from duologue.sessions.settings import ListeningSettings, SessionSettings
from tests.fakes.plugin import FakePlugin

T = 100.0
CALM = SessionConfig(turn_detection=None)
DUPLEX = replace(CALM, duplex=DuplexConfig())


def parts(
    plugin: FakePlugin,
    config: SessionConfig = CALM,
    settings: SessionSettings | None = None,
) -> Parts:
    return assembled(
        "s",
        "a-model",
        plugin,
        plugin.capabilities(),
        config,
        settings or SessionSettings(),
        detectors=frozenset(),
        new_id=id_maker(random.Random(0)),
        now=T,
        wall_time=1e9,
        edge_plays=False,
    )


def test_what_is_heard_reaches_the_plugin_and_what_that_says_reaches_the_output() -> None:
    plugin = FakePlugin(Capabilities(hears_audio=True), answers=False)
    made = parts(plugin)
    made.person.append(bytes(960), T)
    assert len(plugin.of(Audio)) == 1
    made.router.route(CreateResponse(), T)
    (asked,) = plugin.of(ResponseRequested)
    plugin.then(SayText(asked.response_id, "Yes."))
    made.person.append(bytes(960), T)
    events = made.speaking.pull(T, 1 << 20)
    assert [event.delta for event in events if isinstance(event, AudioTranscriptDelta)] == ["Yes."]


def test_what_a_client_writes_is_in_the_history_that_the_plugin_answers() -> None:
    plugin = FakePlugin(answers=False)
    made = parts(plugin)
    item = MessageItem(role="user", content=(InputText(text="Hello?"),))
    made.router.route(CreateItem(item=item), T)
    made.router.route(CreateResponse(), T)
    assert len(made.history) == 1
    (asked,) = plugin.of(ResponseRequested)
    assert [view.text for view in asked.conversation] == ["Hello?"]


def test_a_duplex_session_has_more_to_say() -> None:
    plain = parts(FakePlugin())
    assert (plain.extensions, type(plain.extras)) == (None, DialectExtras)
    duplex = parts(FakePlugin(), DUPLEX)
    assert duplex.extensions is not None
    assert isinstance(duplex.extras, DuplexExtras)


def test_an_answer_is_held_back_for_the_first_update_of_those_who_send_one_late() -> None:
    plain = parts(FakePlugin())
    plain.dialogue.answer_when_free()
    assert plain.dialogue.due_at() == T + ListeningSettings().first_update_hold_s
    duplex = parts(FakePlugin(), DUPLEX)
    duplex.dialogue.answer_when_free()
    assert duplex.dialogue.due_at() is None


def test_echo_is_judged_where_somebody_detects_speech() -> None:
    assert parts(FakePlugin()).speaking.echo is not None
    deaf = SessionSettings(listening=ListeningSettings(vad=None))
    assert parts(FakePlugin(), settings=deaf).speaking.echo is None
