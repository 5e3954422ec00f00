"""A call of a real server, interrupted by voice and recorded: its picture, and it done again."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from duologue.app import running_app
from duologue.commands.picture.svg import write_svg, x_of
from duologue.commands.replay.drawing import draw
from duologue.commands.replay.story import story_of
from duologue.duplex_plugins.registry import make_plugin
from duologue.sessions.recording.recording import decode_recording
from duologue.sessions.recording.rerun import rerun
from duologue.settings import ModelSettings
from duologue.telemetry.settings import TelemetrySettings
from tests.fakes.talking_gateway import LONG_LINE, speech, talking_settings
from tests.patience import PATIENCE_S
from tests.unit.gateway.raw_websocket import RawWebSocket, connected

PIECE_MS = 40


def say(line: RawWebSocket, pcm: bytes) -> None:
    size = PIECE_MS * 48
    for start in range(0, len(pcm), size):
        audio = base64.b64encode(pcm[start : start + size]).decode()
        line.send_event({"type": "input_audio_buffer.append", "audio": audio})


async def interrupted(line: RawWebSocket) -> dict[str, Any]:
    """Ask, and talk over the answer; returns what the server says was heard of it."""
    await line.upgrade("/v1/realtime")
    update = {"type": "realtime", "audio": {"input": {"turn_detection": {"type": "server_vad"}}}}
    line.send_event({"type": "session.update", "session": update})
    say(line, bytes(48 * 200) + speech(600) + bytes(48 * 800))
    for _ in range(4):
        await line.until("response.output_audio.delta")
    say(line, speech(1200))
    truncated = (await line.until("conversation.item.truncated"))[-1]
    say(line, bytes(48 * 800))
    await line.until("input_audio_buffer.committed")
    line.close()
    await line.goodbye()
    return truncated


@pytest.mark.parametrize("record", ["sizes", "content"])
async def test_what_was_heard_of_an_interrupted_answer_is_drawn_where_it_was_cut(
    tmp_path: Path, record: str
) -> None:
    recordings = tmp_path / "recordings"
    telemetry = TelemetrySettings.model_validate({"record": record, "record_folder": recordings})
    settings = talking_settings(tmp_path, LONG_LINE).model_copy(update={"telemetry": telemetry})
    async with running_app(settings) as app:
        async with connected(int(app.url.rpartition(":")[2])) as line:
            truncated = await interrupted(line)
        await app.sessions.wait_empty(PATIENCE_S)
    # It reads files, and the loop is watched.
    await asyncio.to_thread(check, recordings, settings.models[0], truncated)


def check(recordings: Path, model: ModelSettings, truncated: dict[str, Any]) -> None:
    """Check the picture of the one call, and do it again."""
    (file,) = recordings.iterdir()
    recording = decode_recording(file.read_bytes())
    story = story_of(recording)
    answer = story.answers[0]
    assert answer.item_id == truncated["item_id"]
    assert answer.reason == "turn_detected"
    assert answer.heard_s == pytest.approx(truncated["audio_end_ms"] / 1000, abs=0.001)
    assert 0 < answer.heard_s < answer.sent_s <= answer.made_s
    sheet = draw(story)
    root = ElementTree.fromstring(write_svg(sheet))
    cut = root.find(f".//*[@id='cut-{answer.response_id}']")
    assert cut is not None
    # Played from its first sound on, without a break, up to there.
    heard_until = answer.sounds[0].at_s + truncated["audio_end_ms"] / 1000
    assert float(cut.attrib["x1"]) == pytest.approx(x_of(sheet, heard_until), abs=0.5)
    # And the call, done again, comes out the same.
    assert not rerun(recording, make_plugin(model.plugin, model.options)).different
