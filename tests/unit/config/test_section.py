from __future__ import annotations

import pytest
from pydantic import Field, ValidationError

from duologue.config import Section
from tests.fakes.settings import DoorSettings


def test_a_section_cannot_be_changed_after_it_was_made() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        DoorSettings().port = 1


def test_a_section_refuses_keys_that_it_does_not_know() -> None:
    with pytest.raises(ValidationError, match="prot"):
        DoorSettings.model_validate({"prot": 1})


def test_a_default_out_of_its_own_bounds_is_refused() -> None:
    from typing import Annotated

    class Wrong(Section):
        delay_s: Annotated[float, Field(gt=0)] = 0.0

    with pytest.raises(ValidationError, match="greater than 0"):
        Wrong()


def test_the_line_below_a_field_describes_it() -> None:
    assert DoorSettings.model_fields["port"].description == "Port to listen on."


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"port": True}, "input should be a number, not yes or no"),
        ({"host": "a\0b"}, "input holds a NUL character"),
        ({"certificate": "a\0b"}, "input holds a NUL character"),
        ({"api_keys": ["a", "b\0"]}, "input holds a NUL character"),
    ],
)
def test_what_nobody_means_is_refused(given: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        DoorSettings.model_validate(given)


def test_a_yes_among_numbers_is_refused_and_a_yes_that_may_be_one_is_not() -> None:
    class Doors(Section):
        is_open: bool = False
        slots: dict[str, int] = Field(default_factory=dict)
        at_most: float | None = None

    assert Doors.model_validate({"is_open": True}).is_open
    for given in ({"slots": {"voice": True}}, {"at_most": False}):
        with pytest.raises(ValidationError, match="not yes or no"):
            Doors.model_validate(given)
