from __future__ import annotations

from duologue.config.names import (
    did_you_mean,
    env_name,
    section_keys,
    settings_of,
    unknown_env_names,
    variables_also_read,
)
from tests.fakes.settings import FakeRoot

SETTINGS = settings_of(FakeRoot)


def test_settings_are_listed_by_dotted_key_in_order_of_declaration() -> None:
    assert list(SETTINGS) == [
        "door.host",
        "door.port",
        "door.api_keys",
        "door.certificate",
        "door.limits.max_message_bytes",
        "workshop.folders",
        "workshop.weights",
        "workshop.slots",
    ]
    assert section_keys(SETTINGS) == {"door", "door.limits", "workshop"}


def test_paths_secrets_and_mappings_are_recognised_inside_containers() -> None:
    assert [key for key, s in SETTINGS.items() if s.holds_path] == [
        "door.certificate",
        "workshop.folders",
        "workshop.weights",
    ]
    assert [key for key, s in SETTINGS.items() if s.is_secret] == ["door.api_keys"]
    assert [key for key, s in SETTINGS.items() if s.is_open] == [
        "workshop.weights",
        "workshop.slots",
    ]


def test_a_misspelt_section_in_the_environment_is_refused_with_the_nearest_name() -> None:
    assert unknown_env_names({"DUOLOGUE_DOR__PORT": "1"}, SETTINGS, ()) == [
        "DUOLOGUE_DOR__PORT (environment) is not a setting; did you mean DUOLOGUE_DOOR__PORT?"
    ]


def test_names_of_others_whole_sections_and_keys_of_mappings_are_let_through() -> None:
    environ = {
        "PATH": "/bin",
        "DUOLOGUE_CACHE": "/tmp",
        "DUOLOGUE_DOOR": "{}",
        "DUOLOGUE_DOOR__PORT": "1",
        "DUOLOGUE_WORKSHOP__SLOTS__PICTURE": "1",
    }
    assert unknown_env_names(environ, SETTINGS, {"DUOLOGUE_CACHE"}) == []
    assert len(unknown_env_names(environ, SETTINGS, ())) == 1


def test_nothing_is_suggested_when_nothing_is_near() -> None:
    assert did_you_mean("DUOLOGUE_ZZZZZZ", {env_name("door.port")}) == ""


def test_sections_name_the_other_variables_that_they_read() -> None:
    assert variables_also_read(FakeRoot) == {"DUOLOGUE_WORKSHOP_HOME"}
