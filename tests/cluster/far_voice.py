"""A server whose calls are answered by tones: some made beside it, some on another node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from duologue.clients.client import DuplexClient
from duologue.clients.responses import Response

LINE = "and so on " * 60
"""Some 24 s of speech: a worker that is lost is lost in the midst of it."""


def speaking(folder: Path, resource: str, head: str) -> dict[str, Any]:
    """Return the settings of a server with the models ``far`` and ``near``.

    Args:
        folder: Gets the files of its pipelines.
        resource: What the node has on which ``far`` is to speak.
        head: Address of the cluster.
    """
    elsewhere = {"executor": "ray", "resources": {"others": {resource: 1}}}
    for name, where in (("far", elsewhere), ("near", {"executor": "inline"})):
        stage = {"name": name, "runner": "tone", "max_jobs": 4, "queue": 4, **where}
        (folder / f"{name}.yaml").write_text(yaml.safe_dump({"name": name, "stages": [stage]}))
    models = [
        {"name": name, "plugin": "scripted", "options": {"lines": [line], "pipeline": name}}
        for name, line in (("far", LINE), ("near", "Here I am."))
    ]
    return {
        "models": models,
        "engine": {
            "pipelines": [],
            "pipeline_files": [str(folder / "far.yaml"), str(folder / "near.yaml")],
            "ray": {"address": head},
            "restart_backoff_max_s": 1,
        },
        "gateway": {"port": 0, "drain_timeout_s": 0},
        "sessions": {"listening": {"vad": None, "end_of_turn": None, "asr": None}},
    }


async def begun(call: DuplexClient) -> Response:
    """Ask; returns the answer as soon as some of it is heard, or it has failed."""
    answers = call.responses()
    await call.say_text("hello")
    answer = await anext(aiter(answers))
    async for _ in answer.chunks():
        break
    return answer
