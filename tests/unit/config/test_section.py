from __future__ import annotations

import pytest
from pydantic import ValidationError

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

    from pydantic import Field

    class Wrong(Section):
        delay_s: Annotated[float, Field(gt=0)] = 0.0

    with pytest.raises(ValidationError, match="greater than 0"):
        Wrong()


def test_the_line_below_a_field_describes_it() -> None:
    assert DoorSettings.model_fields["port"].description == "Port to listen on."
