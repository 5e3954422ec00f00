from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from duologue.config import Section
from duologue.config.reference import settings_page
from tests.fakes.settings import FakeRoot

PAGE = settings_page(FakeRoot)


class Odd(Section):
    """Section with what is rarely seen."""

    mode: Literal["fast", "slow"] = "fast"
    """How | and why."""

    factor: Annotated[float, Field(gt=0, lt=2)] = 1.0
    is_on: bool = True
    names: tuple[str, ...] = ("a", "b")


class Door(Section):
    """One of several."""

    name: str
    """What it is called."""


class OddRoot(Section):
    """Root."""

    odd: Odd = Odd()
    doors: tuple[Door, ...] = (Door(name="front"),)
    """All of them."""


def test_every_setting_has_a_row_with_bounds_default_and_meaning() -> None:
    assert "| `door.port` | integer from 1 to 65,535 | `8080` | Port to listen on. |" in PAGE
    assert "| `door.certificate` | path, or nothing |  | TLS certificate. |" in PAGE
    assert "| `door.api_keys` | list of secret |  | Keys that are let in. |" in PAGE
    assert "| `workshop.weights` | mapping to path |  | Overrides by name. |" in PAGE


def test_sections_follow_in_order_with_what_they_are_for() -> None:
    titles = [line for line in PAGE.splitlines() if line.startswith("## ")]
    assert titles == ["## door", "## door.limits", "## workshop"]
    assert "## door.limits\n\nA section inside a section.\n" in PAGE
    assert "In the environment: `DUOLOGUE_DOOR__LIMITS__NAME`." in PAGE


def test_choices_flags_lists_and_open_bounds_are_spelt_out() -> None:
    page = settings_page(OddRoot)
    assert "| `odd.mode` | `fast`, `slow` | `fast` | How \\| and why. |" in page
    assert "| `odd.factor` | number above 0 below 2 | `1.0` |  |" in page
    assert "| `odd.is_on` | boolean | `true` |  |" in page
    assert '| `odd.names` | list of text | `["a", "b"]` |  |' in page


def test_what_stands_in_a_list_has_a_table_of_its_own() -> None:
    page = settings_page(OddRoot)
    assert '| `doors` | list of mapping | `[{"name": "front"}]` | All of them. |' in page
    assert "## doors[]\n\nOne of several.\n\n| Setting" in page
    assert "| `doors[].name` | text | required | What it is called. |" in page
