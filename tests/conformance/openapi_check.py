"""Holds the plain HTTP routes against their own OpenAPI document, with schemathesis.

    python -m tests.conformance.openapi_check path/to/schemathesis [its options]

Runs a gateway with scripted models on a free port. Not collected by pytest: schemathesis lives in
an environment of its own, see ``make openapi``.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

from duologue.gateway.http.settings import HttpSettings
from tests.conformance.talking_gateway import API_KEY
from tests.fakes.chat_gateway import chat_gateway, full_settings
from tests.patience import PATIENCE_S

NOT_CHECKED = "positive_data_acceptance"
"""A schema cannot say all that is needed for a request to be carried out: that a recording is in
base64, that a tool's output belongs to a call, that the model has a voice."""


async def check(schemathesis: str, options: list[str], folder: Path) -> int:
    """Return the exit status of schemathesis."""
    settings = full_settings(folder, HttpSettings(max_output_tokens=64, request_timeout_s=20))
    # Nobody here stops the one that writes until it is stopped.
    models = tuple(model for model in settings.models if model.name != "endless")
    async with chat_gateway(settings.model_copy(update={"models": models})) as server:
        process = await asyncio.create_subprocess_exec(
            schemathesis,
            "run",
            f"{server.app.url}/openapi.json",
            f"--header=Authorization: Bearer {API_KEY}",
            "--checks=all",
            f"--exclude-checks={NOT_CHECKED}",
            "--workers=1",
            f"--request-timeout={PATIENCE_S}",
            "--seed=7",
            *options,
        )
        return await process.wait()


def main() -> int:
    """Run."""
    schemathesis, *options = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        sys.path.insert(0, folder)
        return asyncio.run(check(schemathesis, options, Path(folder)))


if __name__ == "__main__":
    sys.exit(main())
