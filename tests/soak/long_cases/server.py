"""The server of the long cases: one model for each kind of answer; whatever is loud is speech."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from duologue.engines.pipeline import StageSpec
from tests.faults.faulty_gateway import write_pipeline
from tests.faults.server_process import ROOT


def a_config(folder: Path) -> dict[str, Any]:
    """Settings of the server."""
    tones = {"ms_per_character": 40}
    stages = (("vad", "energy_vad", {}), ("scripted", "tone", tones), ("reader", "read_aloud", {}))
    env = {"PYTHONPATH": f"{folder}:{ROOT}"}
    files = [
        str(
            write_pipeline(
                folder,
                StageSpec(name=name, runner=runner, max_jobs=64, env=env, settings=settings),
            )
        )
        for name, runner, settings in stages
    ]
    long = "I am still looking into it, which takes rather long, as you can hear. " * 12
    looking_up = [
        {"calls": [{"name": "weather", "arguments": '{"city":"Nice"}'}]},
        {"line": long},
        {"line": long},
        {"line": "So: {outputs}."},
    ]
    options: dict[str, dict[str, Any]] = {
        "short": {"lines": ["A short answer to each turn."]},
        "long": {"lines": [long]},
        "reader": {"lines": ["Read aloud."], "pipeline": "reader"},
        "caller": {"turns": looking_up},
    }
    return {
        "models": [
            {"name": name, "plugin": "scripted", "options": each} for name, each in options.items()
        ],
        "engine": {"pipelines": [], "pipeline_files": files},
        "gateway": {"port": 0, "drain_timeout_s": 5},
        "sessions": {"listening": {"end_of_turn": None, "asr": None}},
        "telemetry": {"log_level": "error"},
    }


def install_voice(folder: Path) -> None:
    """Make a package of the voice, as far as finding it is concerned."""
    metadata = folder / "recorded_voice-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: recorded-voice\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text(
        "[duologue.runners]\nread_aloud = tests.soak.recorded_voice:VOICE\n"
    )
