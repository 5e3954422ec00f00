"""Processes that a test can tell from all others."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from tests.patience import PATIENCE_S


@dataclass(frozen=True)
class Marked:
    """Processes with a mark in their environment, which those that they start inherit."""

    mark: str = field(default_factory=lambda: uuid4().hex)

    @property
    def env(self) -> dict[str, str]:
        return {"DUOLOGUE_TEST_MARK": self.mark}

    def environments(self) -> dict[int, dict[str, str]]:
        """The environment of each, as it was started."""
        found = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                variables = environment(int(entry.name))
                if variables.get("DUOLOGUE_TEST_MARK") == self.mark:
                    found[int(entry.name)] = variables
        return found

    def pid(self) -> int:
        """The one that there is."""
        (pid,) = self.environments()
        return pid

    async def gone(self) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while self.environments():  # noqa: ASYNC110
                await asyncio.sleep(0.01)


def environment(pid: int) -> dict[str, str]:
    """The environment with which a process was started; empty of one that has ended."""
    try:
        raw = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace")
    except OSError:
        return {}
    return dict(entry.split("=", 1) for entry in raw.split("\0") if "=" in entry)
