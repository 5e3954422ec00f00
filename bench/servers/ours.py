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


def serve_command(port: int, config: Path | None = None) -> list[str]:
    return [
        *[sys.executable, "-m", "duologue", "serve", "--gateway.port", str(port)],
        *(["--config", str(config)] if config is not None else []),
    ]
