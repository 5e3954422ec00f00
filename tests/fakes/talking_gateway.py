"""A real gateway that takes loud sounds for speech and answers with tones: without weights."""

from __future__ import annotations

import math
from array import array
from pathlib import Path

from duologue.engines.settings import EngineSettings
from duologue.gateway.settings import GatewaySettings
from duologue.sessions.settings import ListeningSettings, SessionSettings
from duologue.settings import ModelSettings, Settings

LONG_LINE = "A scripted answer that goes on for so long that it is still being sent " * 3
SHORT_LINE = "A scripted answer that can be interrupted."

_VAD = """
name: vad
stages:
  - name: vad
    runner: energy_vad
    executor: inline
    max_jobs: 16
"""

_SCRIPTED = """
name: scripted
stages:
  - name: tones
    runner: tone
    executor: inline
    max_jobs: 16
    settings: {ms_per_character: 40}
"""


def talking_settings(folder: Path, *lines: str) -> Settings:
    """Settings whose pipelines are written into a folder; nothing runs in another process.

    Args:
        lines: What it answers, in turn.
    """
    files = []
    for name, text in (("vad", _VAD), ("scripted", _SCRIPTED)):
        path = folder / f"{name}.yaml"
        path.write_text(text, encoding="utf-8")
        files.append(path)
    return Settings(
        models=(
            ModelSettings(
                name="scripted", plugin="scripted", options={"lines": lines or (SHORT_LINE,)}
            ),
        ),
        engine=EngineSettings(pipelines=(), pipeline_files=tuple(files)),
        gateway=GatewaySettings(port=0, drain_timeout_s=0),
        sessions=SessionSettings(listening=ListeningSettings(end_of_turn=None, asr=None)),
    )


def speech(milliseconds: int, hz: int = 220) -> bytes:
    """A tone that the detector takes for speech, s16le mono at 24 kHz."""
    samples = (
        round(8000 * math.sin(2 * math.pi * hz * n / 24_000)) for n in range(24 * milliseconds)
    )
    return array("h", samples).tobytes()
