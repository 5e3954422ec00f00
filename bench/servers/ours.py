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


def serve_command(config: Path, port: int) -> list[str]:
    return [
        *[sys.executable, "-m", "duologue", "serve"],
        *["--config", str(config), "--gateway.port", str(port)],
    ]
