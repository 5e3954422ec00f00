"""How numbers, dates, money, units and symbols are read aloud (US English).

Every function takes the written text that a rule has found, and trusts the rule's pattern. This
module must not know where the text stands.
"""
# Typographic signs are what this is about.
# ruff: noqa: RUF001, RUF002

from __future__ import annotations

import re

from duologue.duplex_plugins.spoken import number_words as words
from duologue.duplex_plugins.spoken.vocabulary import (
    ABBREVIATIONS,
    CURRENCIES,
    IRREGULAR_PLURALS,
    MONTH,
    MONTHS,
    NO_PLURAL,
    NUMBER,
    OPERATORS,
    SCALES,
    SYMBOLS,
    UNITS,
    VULGAR_FRACTIONS,
)

_SCALED = re.compile(rf"({NUMBER}) ?([A-Za-z]*)")
_LINK_TEXT = re.compile(r"!?\[([^\]]*)\]")
_MONTH_DAY = re.compile(rf"({MONTH}) (\d+)(?:st|nd|rd|th)?(?:,? (\d{{4}}))?")
_DAY_MONTH = re.compile(rf"(?:[Tt]he )?(\d+)(?:st|nd|rd|th)?(?: of)? ({MONTH})(?:,? (\d{{4}}))?")
_CLOCK = re.compile(r"(\d+)(?::(\d+))?(?::\d+)?\s?([AaPp])?")
_WITH_UNIT = re.compile(rf"([-−]?(?:{NUMBER})) ?(.+)")
_RANGE = re.compile(rf"({NUMBER})\s?[-–]\s?({NUMBER}) ?(.*)")
_FRACTION = re.compile(r"(?:(\d+) )?(\d+)/(\d+) ?(.*)")


def number(text: str) -> str:
    """``-1,234.5``, ``007``."""
    plain = text.replace(",", "").replace("−", "-")
    sign = "minus " if plain.startswith("-") else ""
    whole, _, rest = plain.lstrip("-").partition(".")
    if rest:
        return f"{sign}{words.decimal(whole, rest)}"
    if len(whole) > 1 and whole[0] == "0":
        return f"{sign}{words.digits(whole)}"
    return sign + words.cardinal(int(whole))


def scaled(text: str) -> str:
    """``2M``, ``3.5 million``."""
    amount, scale = _groups(_SCALED, text)
    return f"{number(amount)} {SCALES.get(scale, scale)}".rstrip()


def with_unit(text: str) -> str:
    """``5 km``."""
    amount, unit = _groups(_WITH_UNIT, text)
    return f"{number(amount)} {_counted(UNITS[unit], amount)}"


def number_range(text: str) -> str:
    """``5-10``, ``2–3 tbsp``."""
    first, last, unit = _groups(_RANGE, text)
    said = f"{number(first)} to {number(last)}"
    return f"{said} {_counted(UNITS[unit], last)}" if unit else said


def ratio(text: str) -> str:
    """``16:9``."""
    first, _, last = text.partition(":")
    return f"{number(first)} to {number(last)}"


def dimensions(text: str) -> str:
    """``1920x1080``."""
    return " by ".join(number(part) for part in re.split("[x×]", text))


def fraction(text: str) -> str:
    """``3/4``, ``1 1/2 tsp``, ``50/50``."""
    whole, top, bottom, unit = _groups(_FRACTION, text)
    said = words.fraction(int(top), int(bottom))
    if top == bottom:
        said = f"{words.cardinal(int(top))} {words.cardinal(int(bottom))}"
    if whole:
        part = f"a {said.removeprefix('one ')}" if top == "1" else said
        said = f"{words.cardinal(int(whole))} and {part}"
    return f"{said} {_counted(UNITS[unit], '2' if whole else '1')}" if unit else said


def vulgar_fraction(text: str) -> str:
    """``½``, ``2¾``."""
    top, bottom = VULGAR_FRACTIONS[text[-1]]
    return fraction(f"{text[:-1].strip()} {top}/{bottom}".strip())


def ordinal(text: str) -> str:
    """``21st``."""
    return words.ordinal(int(text[:-2].replace(",", "")))


def list_number(text: str) -> str:
    """``1. `` at the start of a line."""
    return f"{number(re.findall('[0-9]+', text)[0])}, "


def dotted(text: str) -> str:
    """``3.11.2``, ``v1.2.3``."""
    return " dot ".join(number(part) for part in text.lstrip("v").split("."))


def phone(text: str) -> str:
    """``+1 555-123-4567``."""
    return ", ".join(words.digits(group) for group in re.findall(r"\d+", text))


def percent(text: str) -> str:
    """``3.5 %``."""
    return f"{number(text.rstrip('% '))} percent"


def temperature(text: str) -> str:
    """``-5°C``, ``72°``."""
    degrees, _, scale = text.partition("°")
    degrees = degrees.strip()
    name = {"C": " Celsius", "F": " Fahrenheit", "K": " Kelvin"}.get(scale.strip(), "")
    return f"{number(degrees)} {_counted('degree', degrees)}{name}"


def height(text: str) -> str:
    """``5'11"``."""
    feet, *inches = re.findall(r"\d+", text)
    said = f"{number(feet)} {_counted('foot', feet)}"
    return f"{said} {number(inches[0])}" if inches else said


def money(text: str) -> str:
    """``$5.30``, ``€2 million``, ``20 £``."""
    symbol = next(char for char in text if char in CURRENCIES)
    name, small = CURRENCIES[symbol]
    amount = text.replace(symbol, "").strip()
    if amount[-1].isalpha():
        return f"{scaled(amount)} {_counted(name, amount)}"
    whole, _, rest = amount.replace(",", "").partition(".")
    if len(rest) != 2 or not small:
        return f"{number(amount)} {_counted(name, amount)}"
    large_part = f"{words.cardinal(int(whole))} {_counted(name, whole)}"
    small_part = f"{words.cardinal(int(rest))} {_counted(small, rest.lstrip('0'))}"
    if not int(rest):
        return large_part
    return f"{large_part} and {small_part}" if int(whole) else small_part


def year(text: str) -> str:
    """``1969``."""
    return words.year(int(text))


def year_range(text: str) -> str:
    """``1914–1918``, ``1914-18``."""
    first, last = re.split("[-–]", text)
    end = words.year(int(last)) if len(last) == 4 else words.cardinal(int(last))
    return f"{words.year(int(first))} to {end}"


def decade(text: str) -> str:
    """``1980s``, ``'90s``."""
    return words.decade(int(text.strip("'’s")))


def iso_date(text: str) -> str:
    """``2024-03-05``."""
    year_, month, day = text.split("-")
    return _date(int(year_), int(month), int(day))


def slash_date(text: str) -> str:
    """``3/5/2024``: the month first, unless it can be none."""
    month, day, year_ = map(int, text.split("/"))
    return _date(year_ if year_ > 99 else 2000 + year_, month, day)


def month_day(text: str) -> str:
    """``March 5th``, ``Mar. 5, 1969``."""
    month, day, year_ = _groups(_MONTH_DAY, text)
    said = f"{_month_name(month)} {words.ordinal(int(day))}"
    return f"{said}, {year(year_)}" if year_ else said


def day_month(text: str) -> str:
    """``5 March``, ``the 5th of March 1969``."""
    day, month, year_ = _groups(_DAY_MONTH, text)
    said = f"the {words.ordinal(int(day))} of {_month_name(month)}"
    return f"{said}, {year(year_)}" if year_ else said


def clock_time(text: str) -> str:
    """``7:30 pm``, ``14:00``, ``7 a.m.``."""
    hour, minute, half = _groups(_CLOCK, text)
    said = words.cardinal(int(hour))
    if minute and int(minute):
        said += f" {'oh ' if minute[0] == '0' else ''}{words.cardinal(int(minute))}"
    elif minute and not half:
        said += " hundred" if int(hour) > 12 else " o'clock"
    return f"{said} {half.upper()}M" if half else said


def url(text: str) -> str:
    """``https://www.example.com/page``: only the host is said."""
    host = re.sub(r"^(?:https?://)?(?:www\.)?", "", text)
    host = re.split("[/?:#]", host)[0]
    return host.replace(".", " dot ").replace("-", " dash ")


def email(text: str) -> str:
    """``some_body@example.com``."""
    return text.replace("@", " at ").replace(".", " dot ").replace("_", " underscore ")


def link(text: str) -> str:
    """``[text](address)``: the text."""
    return _groups(_LINK_TEXT, text)[0]


def inline_code(text: str) -> str:
    """Code in a sentence, between single back quotes."""
    return text.strip("`").replace("_", " ").replace("()", "")


def code_block(_: str) -> str:
    """Nobody wants to hear code."""
    return ", a piece of code, "


def operator(text: str) -> str:
    """``+`` between numbers."""
    return f" {OPERATORS[text.strip()]} "


def symbol(text: str) -> str:
    """``&``."""
    return SYMBOLS[text]


def abbreviation(text: str) -> str:
    """``e.g.``."""
    return ABBREVIATIONS[text]


def shouting(text: str) -> str:
    """``?!!``."""
    return "?" if "?" in text else "!"


def _groups(pattern: re.Pattern[str], text: str) -> list[str]:
    found = pattern.match(text)
    assert found is not None, "the rule found what its reading cannot read"
    return [group or "" for group in found.groups()]


def _counted(name: str, count: str) -> str:
    if count in ("1", "-1", "−1") or name in NO_PLURAL:
        return name
    first, per, rest = name.partition(" per ")
    before, _, noun = first.rpartition(" ")
    return f"{before} {IRREGULAR_PLURALS.get(noun, f'{noun}s')}{per}{rest}".lstrip()


def _date(year_: int, month: int, day: int) -> str:
    if not 1 <= month <= 12:
        month, day = day, month
    return f"{MONTHS[(month - 1) % 12]} {words.ordinal(day)}, {words.year(year_)}"


def _month_name(short: str) -> str:
    return next(name for name in MONTHS if name.startswith(short[:3]))
