"""Numbers as English words. Pure; must not know where the numbers stand in a text."""

from __future__ import annotations

from collections.abc import Sequence

_ONES = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen"),
    "nineteen",
)
_TENS = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_SCALES: Sequence[tuple[int, str]] = (
    (10**12, "trillion"),
    (10**9, "billion"),
    (10**6, "million"),
    (10**3, "thousand"),
)
_LARGEST = 10**15
_IRREGULAR_ORDINALS = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
}
_FRACTION_PARTS = {2: ("half", "halves"), 4: ("quarter", "quarters")}


def cardinal(number: int) -> str:
    """``105`` is ``one hundred five``; what has no everyday name is spelt digit by digit."""
    if number < 0:
        return f"minus {cardinal(-number)}"
    if number >= _LARGEST:
        return digits(str(number))
    words: list[str] = []
    for scale, name in _SCALES:
        if number >= scale:
            words += [_below_thousand(number // scale), name]
            number %= scale
    if number or not words:
        words.append(_below_thousand(number))
    return " ".join(words)


def _below_thousand(number: int) -> str:
    words = []
    if number >= 100:
        words += [_ONES[number // 100], "hundred"]
        number %= 100
        if not number:
            return " ".join(words)
    if number < 20:
        words.append(_ONES[number])
    else:
        tens, ones = divmod(number, 10)
        words.append(_TENS[tens] + (f"-{_ONES[ones]}" if ones else ""))
    return " ".join(words)


def ordinal(number: int) -> str:
    """``21`` is ``twenty-first``."""
    words = cardinal(number)
    cut = max(words.rfind(" "), words.rfind("-")) + 1
    last = words[cut:]
    if last in _IRREGULAR_ORDINALS:
        last = _IRREGULAR_ORDINALS[last]
    elif last.endswith("y"):
        last = f"{last[:-1]}ieth"
    else:
        last = f"{last}th"
    return words[:cut] + last


def year(number: int) -> str:
    """``1969`` is ``nineteen sixty-nine``, ``2005`` is ``two thousand five``."""
    century, rest = divmod(number, 100)
    if not 10 <= century < 100 or number // 10 == 200:
        return cardinal(number)
    if not rest:
        return cardinal(number) if not century % 10 else f"{cardinal(century)} hundred"
    return f"{cardinal(century)} {cardinal(rest) if rest > 9 else f'oh {_ONES[rest]}'}"


def decade(number: int) -> str:
    """``1980`` is ``nineteen eighties``, ``90`` is ``nineties``."""
    words = year(number) if number >= 100 else cardinal(number)
    return f"{words[:-1]}ies" if words.endswith("y") else f"{words}s"


def digits(text: str) -> str:
    """Spell every digit: ``007`` is ``zero zero seven``."""
    return " ".join(_ONES[int(char)] for char in text if char.isdecimal())


def decimal(whole: str, fraction: str) -> str:
    """``3`` and ``14`` is ``three point one four``."""
    return f"{cardinal(int(whole or '0'))} point {digits(fraction)}"


def fraction(numerator: int, denominator: int) -> str:
    """``3`` and ``4`` is ``three quarters``; unusual ones are read as ``seven over twelve``."""
    if denominator in _FRACTION_PARTS:
        one, many = _FRACTION_PARTS[denominator]
    elif 3 <= denominator <= 10:
        one = ordinal(denominator)
        many = f"{one}s"
    else:
        return f"{cardinal(numerator)} over {cardinal(denominator)}"
    return f"{cardinal(numerator)} {one if numerator == 1 else many}"
