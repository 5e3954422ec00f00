from __future__ import annotations

import pytest

from duologue.duplex_plugins.spoken.spoken_rules import MASTER, speak


@pytest.mark.parametrize(
    ("written", "rule"),
    [
        ("5 km", "unit"),
        ("2024-03-05", "iso_date"),
        ("555-123-4567", "phone"),
        ("1914-1918", "year_range"),
        ("5-10", "range"),
        ("1.2.3", "dotted"),
        ("7:30", "time"),
        ("$5", "money"),
        ("e.g.", "abbreviation"),
    ],
)
def test_the_specific_rule_wins_over_the_general_one(written: str, rule: str) -> None:
    match = MASTER.search(written)
    assert match is not None
    assert match.group() == written
    assert match.lastgroup == rule


def test_plain_words_need_no_rule() -> None:
    assert MASTER.search("Nothing here is said otherwise than it is written.") is None


def test_a_match_is_read_by_its_rule() -> None:
    match = MASTER.search("costs $5 now")
    assert match is not None
    assert speak(match) == "five dollars"
