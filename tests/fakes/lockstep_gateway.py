"""A gateway with a lockstep model of random numbers, made on the spot."""

from __future__ import annotations

from pathlib import Path

import msgspec

from duologue.artifacts import ArtifactSettings
from duologue.commands.demo.lockstep import FOLDER, MODEL, PIPELINE, VOICES_OF_CALLERS, pipeline
from duologue.engines.runners.streaming_lm.random_model import write_random_model
from duologue.engines.settings import EngineSettings
from duologue.gateway.settings import GatewaySettings
from duologue.sessions.settings import ListeningSettings, SessionSettings
from duologue.settings import ModelSettings, Settings
from tests.patience import PATIENCE_S


def lockstep_settings(folder: Path, executor: str = "inline") -> Settings:
    """Write the model into a folder, and serve it, by a thread or a process, as both models."""
    write_random_model(folder / FOLDER)
    path = folder / "pipeline.yaml"
    path.write_bytes(msgspec.json.encode(pipeline(executor)))
    options = {"pipeline": PIPELINE}
    return Settings(
        models=(
            ModelSettings(
                name=MODEL,
                plugin="personaplex",
                options=options | {"voices": VOICES_OF_CALLERS},
            ),
            ModelSettings(name="moshi", plugin="moshi", options=options | {"voices": ["hum"]}),
        ),
        engine=EngineSettings(pipelines=(), pipeline_files=(path,)),
        artifacts=ArtifactSettings(folders=(folder,)),
        # Its callers answer no pings, and a worker that is lost takes long to come back.
        gateway=GatewaySettings(port=0, drain_timeout_s=0, heartbeat_s=PATIENCE_S),
        sessions=SessionSettings(listening=ListeningSettings(vad=None, end_of_turn=None, asr=None)),
    )
