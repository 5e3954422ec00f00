from __future__ import annotations

import pytest

from duologue.duplex_plugins.spoken import readings as read


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("$0.01", "one cent"),
        ("$2.00", "two dollars"),
        ("£1.01", "one pound and one penny"),
        ("¥500", "five hundred yen"),
        ("€2k", "two thousand euros"),
    ],
)
def test_money(written: str, said: str) -> None:
    assert read.money(written) == said


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("1 m", "one meter"),
        ("1.5 m", "one point five meters"),
        ("6 ft", "six feet"),
        ("1 km/h", "one kilometer per hour"),
        ("3 m²", "three square meters"),
        ("50 Hz", "fifty hertz"),
    ],
)
def test_units_are_counted(written: str, said: str) -> None:
    assert read.with_unit(written) == said


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("12:00", "twelve o'clock"),
        ("00:15", "zero fifteen"),
        ("7:00 am", "seven AM"),
        ("7 P.M", "seven PM"),
        ("10:20:30", "ten twenty"),
    ],
)
def test_times(written: str, said: str) -> None:
    assert read.clock_time(written) == said


def test_a_date_whose_month_can_be_none_is_read_the_other_way_round() -> None:
    assert read.slash_date("25/12/2020") == "December twenty-fifth, twenty twenty"


def test_only_the_host_of_an_address_is_said() -> None:
    assert read.url("http://www.example.com:8080/a/b?c=d") == "example dot com"


def test_a_text_that_the_rule_did_not_mean_is_a_bug() -> None:
    with pytest.raises(AssertionError):
        read.number_range("no range")
