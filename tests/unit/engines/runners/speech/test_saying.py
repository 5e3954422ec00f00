from __future__ import annotations

from collections.abc import Sequence

import pytest

from duologue.engines.payloads import NO_TOOLS, TextDelta, ToolCallDelta, Tools, ToolSpec
from duologue.engines.runners.speech.saying import Saying
from duologue.engines.runners.speech.spelling import Spelt

pytestmark = pytest.mark.speech

LOOK = Tools((ToolSpec("look"),))
CALL = ("<tool_call>", '\n{"name": "look", ', '"arguments": {"at": 1}}', "\n</tool_call>")


def said(tools: Tools, pieces: Sequence[str]) -> tuple[str, list[ToolCallDelta], list[int], int]:
    """Text, calls, the numbers of the pieces that are said, and how long the text is."""
    saying = Saying(tools)
    outputs, ids = [], list[int]()
    for number, piece in enumerate(pieces):
        found, known = saying.take(Spelt((number,), piece))
        outputs += found
        ids += known
    found, known = saying.finish()
    outputs += found
    text = "".join(each.text for each in outputs if isinstance(each, TextDelta))
    calls = [each for each in outputs if isinstance(each, ToolCallDelta)]
    return text, calls, [*ids, *known], saying.chars


def test_without_functions_all_is_said_as_it_comes() -> None:
    saying = Saying(NO_TOOLS)
    assert saying.take(Spelt((1, 2), "<tool")) == ([TextDelta("<tool")], [1, 2])
    assert saying.take(Spelt((3,), "")) == ([], [3])
    assert saying.finish() == ([], [])


def test_a_call_is_not_said() -> None:
    text, calls, ids, chars = said(LOOK, ["I ", "look.", "\n", *CALL])
    assert (text, ids, chars) == ("I look.", [0, 1], 7)
    assert calls == [ToolCallDelta(0, name="look", arguments='{"at":1}')]


def test_what_only_begins_as_a_call_is_said_in_the_end() -> None:
    text, calls, ids, chars = said(LOOK, ["1 ", "<", "2"])
    assert (text, calls, ids, chars) == ("1 <2", [], [0, 1, 2], 4)


def test_a_piece_is_said_when_all_of_it_is_known_to_be_text() -> None:
    saying = Saying(LOOK)
    assert saying.take(Spelt((1,), "No <to")) == ([TextDelta("No")], [])
    assert saying.take(Spelt((2,), "day>")) == ([TextDelta(" <today>")], [1, 2])


def test_two_calls_in_a_row_and_nothing_else() -> None:
    text, calls, ids, chars = said(LOOK, [*CALL, "\n", *CALL])
    assert (text, ids, chars, len(calls)) == ("", [], 0, 2)
