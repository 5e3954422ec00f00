"""The picture of a recorded call."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from duologue.commands.picture.svg import write_svg, x_of
from duologue.commands.replay.drawing import draw
from duologue.commands.replay.story import Story, story_of
from tests.fakes.taped_call import CUT_MS, SECRETS, MemoryTape, interrupted_call

SVG = "{http://www.w3.org/2000/svg}"


def told(*, content: bool) -> Story:
    memory = MemoryTape(content=content)
    interrupted_call(memory)
    return story_of(memory.recording())


def named(root: ElementTree.Element, name: str) -> ElementTree.Element:
    found = root.find(f".//*[@id='{name}']")
    assert found is not None, name
    return found


@pytest.mark.parametrize("content", [True, False])
def test_the_cut_is_drawn_exactly_where_the_answer_was_heard_to(content: bool) -> None:
    story = told(content=content)
    sheet = draw(story)
    root = ElementTree.fromstring(write_svg(sheet))
    answer = story.answers[0]
    cut = named(root, f"cut-{answer.response_id}")
    # Told by the client, in milliseconds of the item; nothing else may move it.
    expected = x_of(sheet, answer.sounds[0].at_s + CUT_MS / 1000)
    assert float(cut.attrib["x1"]) == pytest.approx(expected, abs=0.01)
    assert cut.attrib["x1"] == cut.attrib["x2"]
    ghosts = root.findall(f".//*[@id='unheard-{answer.response_id}']")
    assert min(float(ghost.attrib["x"]) for ghost in ghosts) == pytest.approx(expected, abs=0.01)
    width = sum(float(ghost.attrib["width"]) for ghost in ghosts)
    assert width == pytest.approx(x_of(sheet, answer.sent_s) - x_of(sheet, CUT_MS / 1000), abs=0.5)


def test_turns_and_waits_are_drawn() -> None:
    story = told(content=False)
    root = ElementTree.fromstring(write_svg(draw(story)))
    for turn in story.turns:
        named(root, f"turn-{turn.item_id}")
    answer = story.answers[0]
    assert answer.asked_by is not None
    assert answer.asked_by.speech_until is not None
    assert answer.audible_at is not None
    wait = f"{answer.audible_at - answer.asked_by.speech_until:.2f} s"
    assert wait in [text.text for text in root.findall(f"{SVG}text")]


def test_words_are_in_it_only_where_the_recording_has_them() -> None:
    assert SECRETS[1][:10] in write_svg(draw(told(content=True)))
    assert "xxx" not in write_svg(draw(told(content=False)))


def test_an_empty_call_can_be_drawn() -> None:
    assert ElementTree.fromstring(write_svg(draw(Story("s", "m", content=False)))) is not None
