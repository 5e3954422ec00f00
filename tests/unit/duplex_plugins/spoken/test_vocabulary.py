from __future__ import annotations

import re

from duologue.duplex_plugins.spoken.vocabulary import MONTH, MONTHS, NUMBER, UNIT, UNITS


def test_the_longer_of_two_units_is_found() -> None:
    assert re.match(UNIT, "km/h")[0] == "km/h"
    assert all(re.fullmatch(UNIT, unit) for unit in UNITS)


def test_months_are_known_by_their_names_and_short_names() -> None:
    assert all(re.fullmatch(MONTH, month) for month in MONTHS)
    assert re.fullmatch(MONTH, "Sept.")


def test_numbers_have_commas_in_the_right_places_only() -> None:
    assert re.fullmatch(NUMBER, "1,234.5")
    assert not re.fullmatch(NUMBER, "1,23")
