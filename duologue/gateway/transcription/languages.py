"""Names of languages, as clients write them and as the API answers.

This module must not know who speaks them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from duologue.protocol.errors import refused, shown

_NAMES: Mapping[str, str] = {
    "ar": "arabic",
    "cs": "czech",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "en": "english",
    "es": "spanish",
    "fi": "finnish",
    "fr": "french",
    "he": "hebrew",
    "hi": "hindi",
    "hu": "hungarian",
    "id": "indonesian",
    "it": "italian",
    "ja": "japanese",
    "ko": "korean",
    "nl": "dutch",
    "no": "norwegian",
    "pl": "polish",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sv": "swedish",
    "th": "thai",
    "tr": "turkish",
    "uk": "ukrainian",
    "vi": "vietnamese",
    "zh": "chinese",
}
_CODES: Mapping[str, str] = {name: code for code, name in _NAMES.items()}


def language_name(code: str) -> str:
    """Return a language's name as the API answers it; the code where it has none here."""
    return _NAMES.get(code, code)


def chosen_language(asked: Sequence[str], known: Sequence[str], param: str = "language") -> str:
    """Return the language of those asked for that a recogniser knows; empty: it finds out.

    Args:
        asked: As ISO 639-1, with or without a region, or as a name; several are alternatives.
        known: As ISO 639-1; empty: all of them.
        param: The field that names them.

    Raises:
        ProtocolError: It knows none of them.
    """
    for name in asked:
        plain = name.strip().lower()
        code = _CODES.get(plain, plain.replace("_", "-").partition("-")[0])
        if (
            code.isascii()
            and code.isalpha()
            and 2 <= len(code) <= 3
            and (not known or code in known)
        ):
            return code
    if asked:
        listed = ", ".join(known) if known else "ISO 639-1 codes, as en"
        raise refused(
            f"{param} is {', '.join(shown(each) for each in asked[:5])}; "
            f"this model understands: {listed}",
            param,
        )
    return known[0] if len(known) == 1 else ""
