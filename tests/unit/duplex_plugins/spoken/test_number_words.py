from __future__ import annotations

import pytest

from duologue.duplex_plugins.spoken import number_words as words


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (0, "zero"),
        (7, "seven"),
        (13, "thirteen"),
        (20, "twenty"),
        (42, "forty-two"),
        (100, "one hundred"),
        (105, "one hundred five"),
        (999, "nine hundred ninety-nine"),
        (1000, "one thousand"),
        (12_034, "twelve thousand thirty-four"),
        (2_000_001, "two million one"),
        (8_100_000_000, "eight billion one hundred million"),
        (5 * 10**12, "five trillion"),
        (-3, "minus three"),
        (10**15, "one" + " zero" * 15),
    ],
)
def test_whole_numbers(number: int, said: str) -> None:
    assert words.cardinal(number) == said


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (1, "first"),
        (2, "second"),
        (3, "third"),
        (5, "fifth"),
        (8, "eighth"),
        (9, "ninth"),
        (10, "tenth"),
        (12, "twelfth"),
        (20, "twentieth"),
        (21, "twenty-first"),
        (100, "one hundredth"),
        (103, "one hundred third"),
    ],
)
def test_ordinals(number: int, said: str) -> None:
    assert words.ordinal(number) == said


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (1066, "ten sixty-six"),
        (1500, "fifteen hundred"),
        (1905, "nineteen oh five"),
        (1969, "nineteen sixty-nine"),
        (2000, "two thousand"),
        (2005, "two thousand five"),
        (2024, "twenty twenty-four"),
        (987, "nine hundred eighty-seven"),
    ],
)
def test_years(number: int, said: str) -> None:
    assert words.year(number) == said


def test_decades_are_plural() -> None:
    assert words.decade(1980) == "nineteen eighties"
    assert words.decade(90) == "nineties"
    assert words.decade(1900) == "nineteen hundreds"


def test_digits_are_spelt_one_by_one() -> None:
    assert words.digits("007") == "zero zero seven"


def test_decimals_name_each_digit_after_the_point() -> None:
    assert words.decimal("3", "14") == "three point one four"
    assert words.decimal("", "5") == "zero point five"


@pytest.mark.parametrize(
    ("top", "bottom", "said"),
    [
        (1, 2, "one half"),
        (3, 4, "three quarters"),
        (2, 3, "two thirds"),
        (1, 5, "one fifth"),
        (7, 12, "seven over twelve"),
    ],
)
def test_fractions(top: int, bottom: int, said: str) -> None:
    assert words.fraction(top, bottom) == said
