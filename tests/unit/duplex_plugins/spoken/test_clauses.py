"""Where a stream of text is cut, whatever pieces it comes in."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.duplex_plugins.spoken.clauses import Clause, ClauseCutter, ClauseLimits


def tokens(text: str) -> list[str]:
    """Pieces such as a language model writes: words with the space before them, and signs."""
    return re.findall(r"\s*\w+|\s*[^\w\s]+|\s+", text)


def cut(pieces: list[str], limits: ClauseLimits | None = None) -> list[Clause]:
    cutter = ClauseCutter(limits or ClauseLimits())
    clauses = [clause for piece in pieces for clause in cutter.feed(piece)]
    return [*clauses, *cutter.finish()]


def texts(text: str, **limits: int) -> list[str]:
    return [clause.text for clause in cut(tokens(text), ClauseLimits(**limits))]


GOLDEN = [
    ("The capital of France is Paris.", ["The capital of France is Paris."]),
    ("Hello! How can I help you today?", ["Hello!", " How can I help you today?"]),
    (
        "Sure, you could watch The Lion King. It is a classic.",
        ["Sure,", " you could watch The Lion King.", " It is a classic."],
    ),
    # Without punctuation the first clause ends where a phrase begins
    (
        "Leaves fall in autumn because they are old.",
        ["Leaves fall in autumn because they", " are old."],
    ),
    (
        "The largest planet in our solar system is Jupiter.",
        ["The largest planet in our solar system", " is Jupiter."],
    ),
    # ... and at the latest after nine words
    (
        "One two three four five six seven eight nine ten eleven.",
        ["One two three four five six seven eight nine", " ten eleven."],
    ),
    # No end of a sentence
    ("Dr. Smith met Mr. Jones.", ["Dr. Smith met Mr. Jones."]),
    ("It is 3.5 m, e.g. small.", ["It is 3.5 m,", " e.g. small."]),
    ("J. K. Rowling wrote it.", ["J. K. Rowling wrote it."]),
    ("See https://example.com/a.b now.", ["See https://example.com/a.b now."]),
    ("It costs $1,234.56 here.", ["It costs $1,234.56 here."]),
    ("It was March 5, 1969, in Ulm.", ["It was March 5, 1969,", " in Ulm."]),
    ("No. 5 is alive.", ["No. 5 is alive."]),
    ("No. That is wrong.", ["No.", " That is wrong."]),
    ("Well... maybe so.", ["Well...", " maybe so."]),
    # Marks around punctuation belong to it
    ('He said "Hello." Then he left.', ['He said "Hello."', " Then he left."]),
    ("**Sure!** Here it is.", ["**Sure!**", " Here it is."]),
    ("Yes - of course.", ["Yes -", " of course."]),
    # Lines and lists
    (
        "1. Use coupons\n2. Buy less\n",
        ["1. Use coupons", "\n2. Buy less"],
    ),
    ("- bread\n- milk", ["- bread", "\n- milk"]),
    # Code is not cut
    (
        "Try this: ```x = 1. y, z\nprint(x)``` Good luck.",
        ["Try this:", " ```x = 1. y, z\nprint(x)``` Good luck."],
    ),
    ("   Hi.  ", ["Hi."]),
    ("", []),
    ("  \n ", []),
]


@pytest.mark.parametrize(("text", "clauses"), GOLDEN)
def test_it_is_cut_here(text: str, clauses: list[str]) -> None:
    assert texts(text) == clauses


def test_the_first_clause_comes_before_the_text_goes_on() -> None:
    cutter = ClauseCutter(ClauseLimits())
    assert list(cutter.feed("Sure")) == []
    assert list(cutter.feed(",")) == [Clause("Sure,", 5)]


def test_a_later_clause_waits_to_see_that_the_sentence_is_over() -> None:
    cutter = ClauseCutter(ClauseLimits())
    assert list(cutter.feed("Yes, look at the file example")) == [Clause("Yes,", 4)]
    assert list(cutter.feed(".")) == []
    assert list(cutter.feed("com")) == []
    assert list(cutter.finish()) == [Clause(" look at the file example.com", 33)]


def test_with_a_reserve_of_speech_commas_no_longer_cut() -> None:
    long_start = "I am very glad that you have asked me this question today. "
    rest = "It is green, blue, red and white."
    assert texts(long_start + rest)[-1] == " It is green, blue, red and white."
    assert texts("Sure. " + rest)[1] == " It is green,"


def test_the_limits_of_the_first_clause_can_be_set() -> None:
    text = "Sure, you could watch a film in the evening."
    assert texts(text, first_pause=3)[0] == "Sure, you could watch a film"
    assert texts(text, first_pause=3, first_break=20, first_most=4)[0] == "Sure, you could watch"


EARLY = {"first_break": 3, "first_most": 5}


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("The capital of France is Paris.", "The capital of France"),
        ("You can take a train or a bus.", "You can take a train"),
        ("You can make it with the eggs at home.", "You can make it"),
        # Not behind a word that belongs to the next one, nor within a name or a number
        ("Try to think about all the good things.", "Try to think about all"),
        ("Most people like to see the moon rise.", "Most people like to see"),
        ("You could also visit Mount Everest then.", "You could also visit Mount Everest"),
        ("Its age must be 14 billion years then.", "Its age must be 14 billion years"),
        ("One can always ask Dr. Smith again.", "One can always ask Dr. Smith"),
        # Before what is quoted or in brackets
        ('I would read "The Little Prince" first.', "I would read"),
        ("Add some more water (half a cup) now.", "Add some more water"),
        # A bad place after all, rather than none
        ("To the of a my to the of a my to the of a my.", "To the of a my to the of a"),
    ],
)
def test_an_early_first_clause_ends_where_a_speaker_could_stop(text: str, first: str) -> None:
    assert texts(text, **EARLY)[0] == first


def test_an_early_first_clause_does_not_wait_to_see_the_next_word_whole() -> None:
    cutter = ClauseCutter(ClauseLimits(**EARLY))
    assert list(cutter.feed("You could try reading books")) == []
    assert list(cutter.feed(" o")) == [Clause("You could try reading books", 27)]


def test_clauses_after_a_short_first_one_are_as_long_as_ever() -> None:
    text = "Sure, you can walk home now and then take a long warm bath there."
    assert texts(text, **EARLY) == texts(text)


def test_a_number_is_not_parted_from_its_unit() -> None:
    text = "It is about as tall as 12 meters or more."
    assert texts(text, first_break=20, first_most=7)[0] == "It is about as tall as 12 meters"


def test_endless_code_is_cut_in_the_end() -> None:
    clauses = texts("Look: ```" + "word " * 600)
    assert len(clauses) > 2
    assert max(map(len, clauses)) < 2100


WRITTEN = st.lists(
    st.sampled_from(
        [
            "word",
            "Word",
            " ",
            " ",
            "\n",
            ".",
            ",",
            "!",
            "...",
            "3",
            "and",
            "```",
            '"',
            "Dr.",
            "-",
            "é",
        ]
    ),
    max_size=80,
).map("".join)


@given(WRITTEN, st.randoms())
def test_clauses_are_the_whole_text_however_it_comes(text: str, random: object) -> None:
    pieces, position = [], 0
    while position < len(text):
        size = random.randint(1, 9)
        pieces.append(text[position : position + size])
        position += size
    clauses = cut(pieces)
    assert "".join(clause.text for clause in clauses) == text.strip()
    end = 0
    for clause in clauses:
        end += len(clause.text)
        assert clause.end == end
        assert clause.text == clause.text.rstrip()
        assert clause.text


@given(st.lists(st.sampled_from(["word", "and", "is,", "stop."]), max_size=200))
def test_no_clause_is_longer_than_the_limit(words: list[str]) -> None:
    limits = ClauseLimits()
    clauses = cut([f" {word}" for word in words], limits)
    lengths = [len(clause.text.split()) for clause in clauses]
    assert all(length <= limits.most for length in lengths)
    assert all(length <= limits.first_most + 4 for length in lengths[:1])
