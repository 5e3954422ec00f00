"""What is in force in a session: changed as a whole, and shown as it is."""

from __future__ import annotations

import pytest
from msgspec import UNSET

from duologue.core.errors import ClientError
from duologue.duplex_plugins.contract import Capabilities
from duologue.duplex_plugins.persona import ANYBODY, Persona
from duologue.protocol.commands import ResponseParams
from duologue.protocol.session_config import SessionConfig, SessionResource
from duologue.protocol.session_patch import SessionPatch
from duologue.sessions.configuration import Configuration
from duologue.sessions.settings import SessionSettings
from tests.fakes.call import FakeCall
from tests.fakes.plugin import FakePlugin

WALL_TIME = 1_000_000.5


def configuration(
    detectors: frozenset[str] = frozenset(), persona: Persona = ANYBODY
) -> Configuration:
    return Configuration(
        "sess_1",
        "our-model",
        SessionConfig(instructions="Be kind."),
        SessionSettings(max_duration_s=60),
        Capabilities(voices=("heart",), persona=persona),
        detectors,
        WALL_TIME,
    )


EXTRAS = FakeCall(FakePlugin()).machine.extras


def test_a_change_is_in_force_at_once() -> None:
    ours = configuration()
    changed = ours.change(SessionPatch(instructions="Be brief."), EXTRAS)
    assert ours.current is changed
    assert changed.instructions == "Be brief."
    assert ours.of_plugin().instructions == "Be brief."


def test_a_change_that_is_refused_changes_nothing() -> None:
    ours = configuration()
    before = ours.current
    with pytest.raises(ClientError):
        ours.change(SessionPatch(instructions="Be brief.", max_output_tokens=-1), EXTRAS)
    assert ours.current is before


def test_a_response_has_what_is_in_force_but_for_what_its_client_wants() -> None:
    ours = configuration()
    assert ours.of_response(UNSET).instructions == "Be kind."
    assert ours.of_response(ResponseParams(instructions="Sing.")).instructions == "Sing."
    assert ours.current.instructions == "Be kind."


def test_it_is_shown_with_the_name_that_was_asked_for_and_its_end() -> None:
    shown = configuration().shown(EXTRAS)
    assert isinstance(shown, SessionResource)
    assert (shown.id, shown.model) == ("sess_1", "our-model")
    assert shown.expires_at == 1_000_060


def test_who_has_spoken_stays_who_it_is_where_the_model_cannot_change() -> None:
    other = SessionPatch(instructions="Be brief.")
    configuration().change(other, EXTRAS, spoken=True)
    ours = configuration(persona=Persona(stays=True))
    with pytest.raises(ClientError) as caught:
        ours.change(other, EXTRAS, spoken=True)
    assert caught.value.code == "cannot_update_instructions"
    assert ours.current.instructions == "Be kind."
    ours.change(other, EXTRAS)
    assert ours.of_plugin().instructions == "Be brief."
