"""Real-world lines, each with what a voice should say for it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.duplex_plugins.spoken.normaliser import speakable

GOLDEN = [
    # Nothing to do
    ("Hello! How can I help you today?", "Hello! How can I help you today?"),
    ("don't worry; be happy: yes", "don't worry; be happy: yes"),
    ("a well-known fact", "a well-known fact"),
    ('He said "hello" to me.', 'He said "hello" to me.'),
    ("U.S. and U.K.", "U.S. and U.K."),
    ("A4 paper, MP3 file, B2B.", "A4 paper, MP3 file, B2B."),
    # Markup
    ("**Paris** is the *capital* of France.", "Paris is the capital of France."),
    ("That is ~~wrong~~ __right__.", "That is wrong right."),
    ("# Title", "Title"),
    ("- Buy bread", "Buy bread"),
    ("• Buy milk", "Buy milk"),
    ("1. Use coupons.", "one, Use coupons."),
    ("> quoted", "quoted"),
    ("| a | b |", "a, b,"),
    ("first line\nsecond line", "first line, second line"),
    ("one thing.\n\nAnother.", "one thing. Another."),
    ("Use `print()` and `my_name`.", "Use print and my name."),
    ("```python\nx = 1\n```\nDone.", "a piece of code, Done."),
    ("Look at [this page](http://x.y/z).", "Look at this page."),
    ("See https://www.python.org/docs/ for more.", "See python dot org for more."),
    ("Visit my-shop.com today.", "Visit my dash shop dot com today."),
    ("Write to a.b@example.com, please.", "Write to a dot b at example dot com, please."),
    ("a<br>b", "a b"),
    ("snake_case", "snake case"),
    # Emoji
    ("That's great! 😊🎉 Enjoy.", "That's great! Enjoy."),
    ("I ❤️ you 👩‍👩‍👧", "I you"),
    ("🇫🇷 France", "France"),
    # Numbers
    ("I have 2 dogs.", "I have two dogs."),
    (
        "1,234,567 people",
        "one million two hundred thirty-four thousand five hundred sixty-seven people",
    ),
    ("It is 3.14.", "It is three point one four."),
    ("agent 007", "agent zero zero seven"),
    ("It was -5 yesterday.", "It was minus five yesterday."),
    ("The population is 8.1 billion.", "The population is eight point one billion."),
    ("30k people and 2M users", "thirty thousand people and two million users"),
    ("the 1st, 2nd and 21st", "the first, second and twenty-first"),
    ("Python 3.11.2 is out.", "Python three dot eleven dot two is out."),
    ("#1 hit", "number one hit"),
    ("~20 people", "about twenty people"),
    ("90% of them", "ninety percent of them"),
    ("Call 555-123-4567 now.", "Call five five five, one two three, four five six seven now."),
    # Fractions, ranges, arithmetic
    ("3/4 cup of sugar", "three quarters cup of sugar"),
    ("1 1/2 tsp salt", "one and a half teaspoons salt"),
    ("2½ hours", "two and a half hours"),
    ("A 50/50 chance", "A fifty fifty chance"),
    ("5-10 minutes", "five to ten minutes"),
    ("2 + 3 = 5", "two plus three equals five"),
    ("6 * 7 = 42", "six times seven equals forty-two"),
    ("10 / 2", "ten divided by two"),
    ("x < 5", "x is less than five"),
    ("ratio 16:9", "ratio sixteen to nine"),
    ("a 4x4 car", "a four by four car"),
    # Money
    ("The price is $5.30.", "The price is five dollars and thirty cents."),
    ("$1", "one dollar"),
    ("€1,200 or £0.99", "one thousand two hundred euros or ninety-nine pence"),
    ("It costs $3.5 million.", "It costs three point five million dollars."),
    ("20 € each", "twenty euros each"),
    # Units
    ("I ran 5 km in 25 min.", "I ran five kilometers in twenty-five minutes."),
    ("1 kg, 2 lbs", "one kilogram, two pounds"),
    ("at 60 mph", "at sixty miles per hour"),
    ("2-3 tbsp of oil", "two to three tablespoons of oil"),
    ("It is -5°C, about 23 °F.", "It is minus five degrees Celsius, about twenty-three degrees "
     "Fahrenheit."),
    ("5'11\" tall", "five feet eleven tall"),
    # Dates and times
    ("On 2024-03-05 we met.", "On March fifth, twenty twenty-four we met."),
    ("10/12/2024", "October twelfth, twenty twenty-four"),
    ("25/12/99", "December twenty-fifth, twenty ninety-nine"),
    ("Born on March 5, 1969 in Ulm.", "Born on March fifth, nineteen sixty-nine in Ulm."),
    ("the 5th of May", "the fifth of May"),
    ("at 7:30 pm.", "at seven thirty PM."),
    ("at 9:05 AM, then 14:00", "at nine oh five AM, then fourteen hundred"),
    ("3:00", "three o'clock"),
    ("7 p.m. is good", "seven PM is good"),
    ("in 1850", "in eighteen fifty"),
    ("It was 1999, then 2001.", "It was nineteen ninety-nine, then two thousand one."),
    ("The 1980s and '90s", "The nineteen eighties and nineties"),
    ("the war (1914-1918)", "the war (nineteen fourteen to nineteen eighteen)"),
    # Words and signs
    ("e.g. apples, i.e. fruit", "for example apples, that is fruit"),
    ("Dr. Smith vs. Mr. Jones", "Doctor Smith versus Mister Jones"),
    ("and/or he/she", "and or he or she"),
    ("salt & pepper", "salt and pepper"),
    ("Well... maybe - or not.", "Well... maybe, or not."),
    ("What?!! No!!!", "What? No!"),
    # Nothing to say
    ("😊", ""),
    ("---", ""),
    ("...", ""),
    ("", ""),
]  # fmt: skip


@pytest.mark.parametrize(("written", "said"), GOLDEN)
def test_a_voice_says_it_so(written: str, said: str) -> None:
    assert speakable(written).text == said


def test_each_known_word_is_tied_to_the_place_that_it_was_written_at() -> None:
    written = "**Bold** text: $5.30 now. 😊"
    spoken = speakable(written)
    assert spoken.text == "Bold text: five dollars and thirty cents now."
    pairs = [(spoken.text[:end].split()[-1], written[:at]) for end, at in spoken.word_ends]
    assert pairs == [
        ("Bold", "**Bold**"),
        ("text:", "**Bold** text:"),
        ("cents", "**Bold** text: $5.30"),
        ("now.", "**Bold** text: $5.30 now."),
    ]


LINES = st.lists(
    st.sampled_from(
        [*(written for written, _ in GOLDEN), "\n", " ", "```", "*", "_", "[", "](", "-", "½", "9"]
    ),
    max_size=5,
).map("".join)


@given(st.one_of(LINES, st.text(max_size=60)))
def test_anything_can_be_said_and_offsets_stay_in_order(written: str) -> None:
    spoken = speakable(written)
    assert spoken.text == " ".join(spoken.text.split())
    previous = (0, 0)
    for end, at in spoken.word_ends:
        assert end > previous[0]
        assert previous[1] <= at <= len(written)
        assert end == len(spoken.text) or spoken.text[end] == " "
        previous = (end, at)
