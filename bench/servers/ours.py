"""How Duologue itself is started and opened by benchmarks: the one place that knows."""

import sys
from pathlib import Path

REALTIME_PATH = "/v1/realtime"

ECHO_SCRIPT = (
    "< session.created",
    '> {"type":"session.update","session":{"type":"realtime",'
    '"audio":{"input":{"turn_detection":null}}}}',
    "< session.updated",
)
"""Opens an echo call: no turn detection, so no detector runs."""

DUPLEX_PATH = "/v1/realtime?duplex=1&autostart=0"

DUPLEX_ECHO_SCRIPT = (
    '> {"type":"session.update","session":{"input_audio_format":"pcm16","sample_rate_hz":24000}}',
    "< session.updated",
)
"""The same in the duplex dialect, where the client opens the session."""


def serve_command(port: int, config: Path | None = None) -> list[str]:
    return [
        *[sys.executable, "-m", "duologue", "serve", "--gateway.port", str(port)],
        *(["--config", str(config)] if config is not None else []),
    ]
