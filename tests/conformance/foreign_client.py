"""Runs a client that has an environment of its own, and reads its report."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.conformance.talking_gateway import API_KEY
from tests.faults.scripted_models import beeps
from tests.patience import PATIENCE_S

HERE = Path(__file__).parent
ENVIRONMENTS = HERE.parent.parent / "build" / "clients"
"""Where ``make clients`` puts the environments of the clients in Python."""

SAYINGS = ("hello again", "hello long", "hello weather")


class ClientFailed(AssertionError):
    """A client did not get to its end."""


@dataclass(frozen=True)
class Caller:
    """A script that holds a call with a client.

    Args:
        environment: Name of the folder under ``build/clients``; none for Node.
        arguments: What the script is told.
    """

    script: str
    environment: str | None = None
    arguments: tuple[str, ...] = ()

    @property
    def command(self) -> list[str]:
        if self.environment is None:
            # Before version 22 Node hides the socket that browsers have.
            script = str(HERE / "node" / self.script)
            return ["node", "--experimental-websocket", script, *self.arguments]
        python = ENVIRONMENTS / self.environment / "bin" / "python"
        return [str(python), str(HERE / "python" / self.script), *self.arguments]


async def hold_call(
    caller: Caller,
    url: str,
    folder: Path,
    question: bytes | None = None,
    *,
    certificate: Path | None = None,
) -> dict[str, Any]:
    """Let a client call the gateway at ``url``; what it reports.

    Args:
        folder: For the recordings of what it says.
        question: Ask only this, s16le at 24 kHz, and report the answer.
        certificate: What a client in Node is to trust.

    Raises:
        ClientFailed: It ended without a report.
    """
    speech = folder / "speech"
    speech.mkdir()
    for saying in SAYINGS:
        (speech / f"{saying}.pcm").write_bytes(beeps(saying))
    if question is not None:
        (speech / "question.pcm").write_bytes(question)
    environment = {
        **os.environ,
        "DUOLOGUE_BASE_URL": f"{url}/v1",
        "DUOLOGUE_API_KEY": API_KEY,
        "DUOLOGUE_SPEECH": str(speech),
    }
    if certificate is not None:
        environment["NODE_EXTRA_CA_CERTS"] = str(certificate)
    # Ours, which some IDEs and test runs set, would hand the client our packages.
    environment.pop("PYTHONPATH", None)
    # Where this is set, every start compiles thousands of modules anew.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    process = await asyncio.create_subprocess_exec(
        *caller.command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=environment,
    )
    try:
        async with asyncio.timeout(3 * PATIENCE_S):
            said, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    lines = said.decode(errors="replace").splitlines()
    reports = [line.removeprefix("REPORT ") for line in lines if line.startswith("REPORT ")]
    if process.returncode != 0 or not reports:
        tail = "\n".join(lines[-40:])
        raise ClientFailed(f"{caller.script} ended with {process.returncode}:\n{tail}")
    report: dict[str, Any] = json.loads(reports[-1])
    return report
