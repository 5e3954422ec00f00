"""What is written one way and said another: patterns, each with how it is read aloud.

The first pattern that matches at a place wins, so the specific stand before the general. This
module must not know how the results are put together.
"""
# Typographic signs are what this is about.
# ruff: noqa: RUF001

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from duologue.duplex_plugins.spoken import readings as read
from duologue.duplex_plugins.spoken.vocabulary import (
    CURRENCIES,
    MONTH,
    NUMBER,
    SYMBOLS,
    UNIT,
    VULGAR_FRACTIONS,
)

_Reading = Callable[[str], str]

_START = r"(?<![\w.,])"
_END = r"(?![\w]|[.,]\d)"
_SIGNED = rf"{_START}[-−]?(?:{NUMBER})"
_MONEY_SIGN = f"[{''.join(CURRENCIES)}]"
_SCALE = r"(?: ?(?:thousand|million|billion|trillion|bn|[kKMB])\b)?"
_YEAR_LONG_AGO = r"1[1-8]\d\d"
_YEAR = r"(?:19\d\d|20[0-4]\d)"
_ANY_YEAR = r"(?:1[1-9]|20)\d\d"
_YEAR_CUE = "|".join(
    rf"(?<=\b{cue} )" for cue in ("[Ii]n", "[Ss]ince", "[Bb]y", "[Ff]rom", "[Uu]ntil", "of")
)
# A dot that may also end the sentence is left to it.
_HALF_OF_DAY = r"[AaPp](?:\.[Mm]\.(?=,? [a-z])|\.?[Mm]\b)"
_TITLE = r"(?:Dr|Mr|Mrs|Ms|Prof)\.(?= ?[A-Z])"
# Pictographs, symbols used as such, flags, and what joins or varies them.
_EMOJI = (
    "[\U0001f000-\U0001faff\u2600-\u27bf\u2b00-\u2bff\u2300-\u23ff\u200d\ufe0f\u20e3"
    "\U000e0020-\U000e007f\u2122\u00a9\u00ae]+"
)


def _always(said: str) -> _Reading:
    return lambda _: said


_RULES: Sequence[tuple[str, str, _Reading]] = (
    ("code_block", r"```[\s\S]*?(?:```|\Z)", read.code_block),
    ("inline_code", r"`[^`\n]+`", read.inline_code),
    ("link", r"!?\[[^\]\n]*\]\([^)\s]*\)", read.link),
    ("email", r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b", read.email),
    ("url", r"\b(?:https?://|www\.)[^\s<>()\"']*[\w/]", read.url),
    ("domain", r"\b[a-z0-9-]+\.(?:com|org|net|edu|gov|io|dev)\b(?:/[^\s,;!?]*\w)?", read.url),
    ("tag", r"</?[a-zA-Z][^<>\n]*>", _always(" ")),
    ("rule", r"(?m:^[ \t]*(?:[-*_][ \t]?){3,}$)", _always(" ")),
    ("table_rule", r"(?m:^[ \t]*\|?[ \t:|-]*--[ \t:|-]*$)", _always(" ")),
    ("heading", r"(?m:^[ \t]*#{1,6}[ \t]+)", _always("")),
    ("quote", r"(?m:^[ \t]*>[ \t]?)", _always("")),
    ("bullet", r"(?m:^\s*[-*+•‣][ \t]+)", _always("")),
    ("list_number", r"(?m:^\s*\d{1,2}[.)][ \t]+(?=\S))", read.list_number),
    ("emoji", _EMOJI, _always(" ")),
    ("dimensions", r"(?<![\w.])\d+[x×]\d+(?!\w)", read.dimensions),
    ("times", r"(?<=[\d)]) ?[*x×÷] ?(?=[\d(])|(?<=[\d)]) / (?=[\d(])", read.operator),
    ("money", rf"{_MONEY_SIGN} ?(?:{NUMBER}){_SCALE}", read.money),
    ("money_after", rf"{_START}(?:{NUMBER}) ?[€£](?!\d)", read.money),
    ("iso_date", rf"{_START}\d{{4}}-[01]?\d-[0-3]?\d(?!\d)", read.iso_date),
    ("slash_date", rf"{_START}[0-3]?\d/[0-3]?\d/(?:\d{{4}}|\d\d)(?!\d)", read.slash_date),
    ("month_day", rf"\b{MONTH} \d{{1,2}}(?:st|nd|rd|th)?(?!\d)(?:,? \d{{4}}\b)?", read.month_day),
    (
        "day_month",
        rf"\b(?:[Tt]he )?\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {MONTH}\b(?:,? \d{{4}}\b)?",
        read.day_month,
    ),
    (
        "time",
        rf"\b\d{{1,2}}:[0-5]\d(?::[0-5]\d)?(?:\s?{_HALF_OF_DAY})?(?!\d)",
        read.clock_time,
    ),
    ("hour", rf"\b1?\d\s?{_HALF_OF_DAY}", read.clock_time),
    ("ratio", r"(?<![\w.:])\d{1,3}:\d{1,3}(?![\w:])", read.ratio),
    ("temperature", rf"{_SIGNED} ?°(?: ?[CFK]\b)?", read.temperature),
    ("percent", rf"{_SIGNED} ?%", read.percent),
    (
        "phone",
        r"(?<!\w)(?:\+\d{1,3}[ -])?(?:\(\d{3}\) ?|\d{3}[-. ])\d{3}[-. ]\d{4}\b",
        read.phone,
    ),
    (
        "year_range",
        rf"(?<![\w.,-]){_ANY_YEAR}[-–](?:{_ANY_YEAR}|\d\d)(?![\w-])",
        read.year_range,
    ),
    (
        "range",
        rf"{_START}(?:{NUMBER})(?:[-–]| – )(?:{NUMBER})(?: ?(?:{UNIT})\b)?(?![\w-])",
        read.number_range,
    ),
    ("unit", rf"{_SIGNED} ?(?:{UNIT})(?![\w/²])", read.with_unit),
    (
        "fraction",
        rf"(?<![\w./])(?:\d+ )?\d{{1,3}}/\d{{1,3}}(?: ?(?:{UNIT})\b)?(?![\w/])",
        read.fraction,
    ),
    ("height", r"(?<![\w.,])\d{1,2}['′](?: ?\d{1,2}[\"″])?(?!\w)", read.height),
    ("vulgar", rf"(?:\d+ ?)?[{''.join(VULGAR_FRACTIONS)}]", read.vulgar_fraction),
    ("dotted", r"(?<![\w.])v?\d+(?:\.\d+){2,}(?!\w)", read.dotted),
    ("ordinal", r"\b\d[\d,]*(?:st|nd|rd|th)\b", read.ordinal),
    ("decade", r"(?<!\w)(?:\d{3}0|['’]?\d0)['’]?s\b", read.decade),
    ("year", rf"\b{_YEAR}{_END}", read.year),
    ("year_long_ago", rf"(?:{_YEAR_CUE}){_YEAR_LONG_AGO}{_END}", read.year),
    ("number_sign", r"(?:#|\b[Nn]o\. )(?=\d)", _always("number ")),
    ("about", r"~(?=\d)", _always("about ")),
    (
        "compare",
        r"(?<=[\w)]) (?:[=<>]|[+-](?= ?\d)) ?(?=[\w(-])|(?<=\w)=(?=\w)",
        read.operator,
    ),
    ("negative", rf"(?<![\w)\]])[-−](?:{NUMBER}){_END}", read.number),
    ("scaled", rf"{_START}(?:{NUMBER})(?: ?bn|[kKMB])\b", read.scaled),
    ("number", rf"{_START}(?:{NUMBER}){_END}", read.number),
    (
        "abbreviation",
        rf"(?<!\w)(?:e\.g\.|i\.e\.|etc\.(?= [a-z])|vs\.?|approx\.|{_TITLE}|[ap]\.m\.(?= [a-z])"
        r"|w/o?(?=\s))(?!\w)",
        read.abbreviation,
    ),
    ("and_or", r"(?<=\band)/(?=or\b)", _always(" ")),
    ("either", r"(?<=[a-z])/(?=[a-z])", _always(" or ")),
    ("dash", r"\s+[-–—]{1,3}\s+|—|(?<=\w)--(?=\w)", _always(", ")),
    ("ellipsis", r"\.{3,}|…", _always("...")),
    ("shouting", r"!{2,}|\?{2,}|[!?]{2,}", read.shouting),
    ("symbol", f"[{re.escape(''.join(SYMBOLS))}]", read.symbol),
    ("paragraph", r"(?<=[^\s.,;:!?])[ \t]*\n+", _always(", ")),
    ("markup", r"\*+|~~|(?<!\w)_+|_+(?!\w)|[\\`~^{}<>#]|\$\$?", _always("")),
    ("underscore", r"_", _always(" ")),
)

_READINGS = {name: reading for name, _, reading in _RULES}

MASTER = re.compile("|".join(f"(?P<{name}>{pattern})" for name, pattern, _ in _RULES))
"""Finds, from left to right, everything that is not said as it is written."""


def speak(match: re.Match[str]) -> str:
    """Return what is said for a match of ``MASTER``; a space at an end keeps words apart."""
    assert match.lastgroup is not None
    return _READINGS[match.lastgroup](match.group())
