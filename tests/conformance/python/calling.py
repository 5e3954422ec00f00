"""What the callers written in Python share: their orders, a microphone, complaints, the report.

A caller runs in an environment that has its client and not Duologue, so nothing of ours is
imported here.
"""

import asyncio
import json
import logging
import os
from collections.abc import AsyncIterator
from pathlib import Path

RATE_HZ = 24_000
CHUNK_MS = 50
PATIENCE_S = 60.0

BASE_URL = os.environ["DUOLOGUE_BASE_URL"]
"""Such as ``http://127.0.0.1:8080/v1``."""

WS_URL = BASE_URL.replace("http", "ws", 1) + "/realtime?model=duologue"
API_KEY = os.environ["DUOLOGUE_API_KEY"]
SPEECH = Path(os.environ["DUOLOGUE_SPEECH"])
"""Folder of s16le mono files at 24 kHz, named by what is said in them."""

QUESTION = "question"
ONE_QUESTION = (SPEECH / f"{QUESTION}.pcm").exists()
"""The server has real models: one question is asked, and whatever they answer is reported."""


def speech(name: str) -> bytes:
    """Return what is said, as PCM."""
    return (SPEECH / f"{name}.pcm").read_bytes()


async def microphone(pcm: bytes, quiet_ms: int = 1500) -> AsyncIterator[bytes]:
    """Yield speech and the quiet after it, chunk by chunk, at the pace of a microphone."""
    size = RATE_HZ * 2 * CHUNK_MS // 1000
    audio = pcm + bytes(RATE_HZ * 2 * quiet_ms // 1000)
    loop = asyncio.get_running_loop()
    due = loop.time()
    for start in range(0, len(audio), size):
        yield audio[start : start + size]
        due += CHUNK_MS / 1000
        await asyncio.sleep(max(0.0, due - loop.time()))


class Complaints(logging.Handler):
    """All that a client logs at warning or above."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.said: list[str] = []
        logging.getLogger().addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep what was said."""
        self.said.append(f"{record.name}: {record.getMessage()}"[:500])


class Heard:
    """News from a client, and the wait for some of it."""

    def __init__(self) -> None:
        self.notes: dict[str, object] = {}
        self._changed = asyncio.Event()

    def note(self, **notes: object) -> None:
        """Keep what was seen; the last value of each name counts."""
        self.notes.update(notes)
        self._changed.set()

    def count(self, name: str, more: int = 1) -> None:
        """Add to a number."""
        self.note(**{name: int(self.notes.get(name, 0)) + more})

    async def until(self, name: str, value: object = None) -> None:
        """Wait until something was noted: any value, or at least a number, or just this."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not self._is(name, value):
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError(f"no {name} ({value}) came, only {self.notes}") from None

    def _is(self, name: str, value: object) -> bool:
        seen = self.notes.get(name)
        if value is None:
            return seen is not None
        if isinstance(value, int) and isinstance(seen, int):
            return seen >= value
        return seen == value


def report(notes: dict[str, object], complaints: list[str]) -> None:
    """Say what happened, as the last line."""
    print("REPORT " + json.dumps({**notes, "complaints": complaints}), flush=True)
