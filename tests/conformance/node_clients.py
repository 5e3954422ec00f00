"""Programs in Node that drive a server with OpenAI's own SDK, and say what they saw."""

from __future__ import annotations

import asyncio
import json
from asyncio.subprocess import PIPE
from pathlib import Path
from typing import Any

NODE = Path(__file__).parent / "node"


async def seen_by(program: str, *arguments: str) -> dict[str, Any]:
    """Run a program to its end; returns what it prints."""
    node = await asyncio.create_subprocess_exec(
        "node", str(NODE / program), *arguments, stdout=PIPE, stderr=PIPE
    )
    out, err = await node.communicate()
    assert (node.returncode, err.decode()) == (0, ""), "are its packages there? run: make node"
    seen: dict[str, Any] = json.loads(out)
    return seen
