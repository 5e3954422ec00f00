"""A call that OpenAI's SDK holds with a real server is recorded, shown, and done again."""

from __future__ import annotations

from asyncio import Runner
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree

import pytest
import uvloop

from duologue.commands.picture.svg import write_svg
from duologue.commands.replay.drawing import draw
from duologue.commands.replay.story import story_of
from duologue.duplex_plugins.registry import make_plugin
from duologue.sessions.recording.recording import decode_recording
from duologue.sessions.recording.rerun import rerun
from duologue.telemetry.settings import TelemetrySettings
from tests.conformance.recorded_call import hold_call
from tests.conformance.talking_gateway import talking_settings


@pytest.mark.parametrize("record", ["sizes", "content"])
def test_the_call_of_a_stock_client_comes_out_the_same_when_it_is_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record: Literal["sizes", "content"]
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    telemetry = TelemetrySettings(record=record, record_folder=tmp_path / "calls")
    settings = talking_settings(tmp_path).model_copy(update={"telemetry": telemetry})
    with Runner(loop_factory=uvloop.new_event_loop) as runner:
        wire = runner.run(hold_call(settings))
    (path,) = (tmp_path / "calls").iterdir()
    recording = decode_recording(path.read_bytes())
    assert not recording.cut_off

    model = settings.models[0]
    again = rerun(recording, make_plugin(model.plugin, model.options))
    assert again.steps > 100
    if record == "content":
        assert again.differences == []

    story = story_of(recording)
    assert len(story.answers) == len(wire.of("response.created"))
    cuts = {event["item_id"] for event in wire.sent("conversation.item.truncate")}
    cut = [answer for answer in story.answers if answer.item_id in cuts]
    assert [answer.heard_s for answer in cut] == [0.0], "the smallest of the client's words"
    assert story.interruptions()
    said = str(path.read_bytes())
    assert ("hello" in said) == (record == "content")
    ElementTree.fromstring(write_svg(draw(story)))
