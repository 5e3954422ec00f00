from __future__ import annotations

import pytest

from duologue.core.errors import ProtocolError
from duologue.gateway.transcription.languages import chosen_language, language_name


@pytest.mark.parametrize("asked", ["en", "EN", "en-US", "en_GB", "English", " en "])
def test_a_language_is_understood_however_it_is_written(asked: str) -> None:
    assert chosen_language([asked], ("en",)) == "en"


def test_the_first_one_that_is_known_is_taken() -> None:
    assert chosen_language(["fr", "de", "en"], ("en", "de")) == "de"


def test_who_asks_for_none_gets_the_only_one_or_leaves_it_open() -> None:
    assert chosen_language([], ("en",)) == "en"
    assert chosen_language([], ("en", "de")) == ""
    assert chosen_language([], ()) == ""


def test_a_recogniser_of_all_languages_takes_any_code() -> None:
    assert chosen_language(["sw"], ()) == "sw"


@pytest.mark.parametrize("asked", ["de", "klingon", "", "e", "<|de|>", "x" * 1000])
def test_c74_another_language_is_refused_with_those_that_are_known(asked: str) -> None:
    with pytest.raises(ProtocolError, match="this model understands: en") as refused:
        chosen_language([asked], ("en",))
    assert refused.value.param == "language"
    assert len(refused.value.message) < 200


def test_what_is_no_code_is_refused_by_everybody() -> None:
    with pytest.raises(ProtocolError, match="ISO 639-1"):
        chosen_language(["klingon"], ())


def test_names_are_those_of_the_api() -> None:
    assert language_name("en") == "english"
    assert language_name("sw") == "sw"
