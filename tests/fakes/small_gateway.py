"""A real gateway in the test's own process, on a free port of this machine, without weights."""

from __future__ import annotations

from duologue.engines.settings import EngineSettings
from duologue.gateway.settings import GatewaySettings
from duologue.sessions.settings import SessionSettings
from duologue.settings import ModelSettings, Settings

API_KEY = "key-of-the-tests"
LINE = "This is a scripted answer, which is long enough to be interrupted."


CALLING_TURNS = [
    {
        "calls": [
            {"name": "weather", "arguments": '{"city":"Nice"}'},
            {"name": "clock", "arguments": "{}"},
        ]
    },
    {"line": "It is {outputs}."},
]
"""Two functions are called at once; those that a session does not offer are left out."""


def small_settings(
    *, api_keys: tuple[str, ...] = (), sessions: SessionSettings | None = None
) -> Settings:
    """Three models: one that answers with tones, one that calls functions first, and an echo."""
    return Settings(
        models=(
            ModelSettings(name="scripted", plugin="scripted", options={"lines": [LINE]}),
            ModelSettings(name="echo", plugin="echo"),
            ModelSettings(name="caller", plugin="scripted", options={"turns": CALLING_TURNS}),
        ),
        engine=EngineSettings(pipelines=("scripted",)),
        gateway=GatewaySettings(port=0, drain_timeout_s=0, api_keys=api_keys),
        sessions=sessions or SessionSettings(),
    )
