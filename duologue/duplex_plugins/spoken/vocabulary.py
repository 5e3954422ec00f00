"""Signs, units and abbreviations, and the English words for them. Data only."""
# Typographic signs are what this is about.
# ruff: noqa: RUF001

from __future__ import annotations

import re

NUMBER = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
SCALES = {"k": "thousand", "K": "thousand", "M": "million", "B": "billion", "bn": "billion"}
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
MONTH = (
    r"(?:Jan(?:uary|\.)?|Feb(?:ruary|\.)?|Mar(?:ch|\.)?|Apr(?:il|\.)?|May|June?|July?|"
    r"Aug(?:ust|\.)?|Sept?(?:ember|\.)?|Oct(?:ober|\.)?|Nov(?:ember|\.)?|Dec(?:ember|\.)?)"
)
CURRENCIES = {
    "$": ("dollar", "cent"),
    "€": ("euro", "cent"),
    "£": ("pound", "penny"),
    "¥": ("yen", ""),
    "₹": ("rupee", "paisa"),
}
NO_PLURAL = frozenset({"yen", "hertz", "kilohertz", "megahertz", "gigahertz", "paisa"})
IRREGULAR_PLURALS = {"foot": "feet", "inch": "inches", "penny": "pence"}
UNITS = {
    "km/h": "kilometer per hour",
    "mph": "mile per hour",
    "m/s": "meter per second",
    "kWh": "kilowatt hour",
    "km²": "square kilometer",
    "m²": "square meter",
    "km": "kilometer",
    "cm": "centimeter",
    "mm": "millimeter",
    "m": "meter",
    "ft": "foot",
    "mi": "mile",
    "kg": "kilogram",
    "mg": "milligram",
    "g": "gram",
    "lbs": "pound",
    "lb": "pound",
    "oz": "ounce",
    "ml": "milliliter",
    "mL": "milliliter",
    "L": "liter",
    "tbsp": "tablespoon",
    "tsp": "teaspoon",
    "TB": "terabyte",
    "GB": "gigabyte",
    "MB": "megabyte",
    "KB": "kilobyte",
    "GHz": "gigahertz",
    "MHz": "megahertz",
    "kHz": "kilohertz",
    "Hz": "hertz",
    "kW": "kilowatt",
    "ms": "millisecond",
    "min": "minute",
    "hrs": "hour",
    "hr": "hour",
    "kcal": "kilocalorie",
}
UNIT = "|".join(sorted(map(re.escape, UNITS), key=len, reverse=True))
VULGAR_FRACTIONS = {
    "½": (1, 2),
    "⅓": (1, 3),
    "⅔": (2, 3),
    "¼": (1, 4),
    "¾": (3, 4),
    "⅕": (1, 5),
    "⅛": (1, 8),
}
ABBREVIATIONS = {
    "e.g.": "for example",
    "i.e.": "that is",
    "etc.": "et cetera",
    "vs.": "versus",
    "vs": "versus",
    "approx.": "approximately",
    "Dr.": "Doctor",
    "Mr.": "Mister",
    "Mrs.": "Missus",
    "Ms.": "Miz",
    "Prof.": "Professor",
    "a.m.": "AM",
    "p.m.": "PM",
    "w/": "with",
    "w/o": "without",
}
SYMBOLS = {
    "&": " and ",
    "%": " percent",
    "@": " at ",
    "°": " degrees",
    "≈": " about ",
    "±": " plus or minus ",
    "→": " to ",
    "÷": " divided by ",
    "×": " times ",
    "≤": " at most ",
    "≥": " at least ",
    "≠": " is not ",
    "²": " squared",
    "³": " cubed",
    "√": " the square root of ",
    "π": " pi ",
    "|": ", ",
}
OPERATORS = {
    "+": "plus",
    "-": "minus",
    "−": "minus",
    "*": "times",
    "x": "times",
    "×": "times",
    "/": "divided by",
    "÷": "divided by",
    "=": "equals",
    "<": "is less than",
    ">": "is greater than",
}
