"""Kills a gateway under calls: ``python -m tests.faults.edge_killed`` prints what becomes of them.

What is said and heard is a signal that counts: sample n is n. The echo sends it back, so that any
hole, any repetition and any exchange would show, both ways.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import statistics
import struct
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from duologue.clients import DuplexClient, Reconnected, ReconnectPolicy
from duologue.protocol.events import ErrorEvent, SessionUpdated
from duologue.protocol.response_events import AudioDelta
from tests.faults.server_process import server_process
from tests.patience import PATIENCE_S

RATE_HZ = 24000
FRAME_MS = 100
FRAME = RATE_HZ * FRAME_MS // 1000
FIRST_HEARD = FRAME
"""The echo says nothing of the frame that makes it begin."""

STARTS_S = 3 * PATIENCE_S
"""Gateways that are killed all at once have to be started first, on a machine that may be busy."""

QUICK = ReconnectPolicy(
    first_wait_s=0.05, longest_wait_s=0.4, give_up_s=STARTS_S, kept_bytes=16 << 20
)

CONFIG: dict[str, Any] = {
    "models": [{"name": "echo", "plugin": "echo"}],
    "engine": {"pipelines": ["scripted"]},
    "gateway": {"port": 0, "drain_timeout_s": 0},
    "hosts": {"edges": 2},
    "sessions": {"disconnect_grace_s": STARTS_S},
}


_NUMBERS = struct.pack("<65536h", *range(-32768, 32768))


@dataclass(frozen=True)
class Outcome:
    """What became of all calls.

    Args:
        intact: Calls whose signal has neither a hole nor a repetition, either way.
        worst_silence_s: The longest time that a caller heard nothing, beyond what it had heard of.
    """

    calls: int
    resumed: int
    intact: int
    errors: int
    worst_silence_s: float
    median_silence_s: float


def counting(start: int, samples: int) -> bytes:
    """Return samples that are their own numbers.

    Fifty microphones may take no time themselves: who comes back waits for the same cores.
    """
    begin = 2 * (start % 65536)
    rounds = (begin + 2 * samples) // len(_NUMBERS) + 1
    numbers = _NUMBERS if rounds == 1 else _NUMBERS * rounds
    return numbers[begin : begin + 2 * samples]


class CountingCall:
    """Says the counting signal in real time, and keeps what comes back and when."""

    def __init__(self, call: DuplexClient, host_id: int) -> None:
        self.call = call
        self.edge = host_id
        self.said = 0
        self.heard = bytearray()
        self.gaps_s: list[float] = []
        self.resumed = 0
        self.errors = 0
        self._events = call.events()
        self._heard_at = 0.0

    async def opened(self) -> None:
        """Wait until the session is there."""
        while not isinstance(await anext(self._events), SessionUpdated):
            pass

    async def talk(self, until: float) -> None:
        """Say a frame at a time, as a microphone would, until a moment."""
        begun = time.monotonic()
        while time.monotonic() < until:
            self.call.send_audio(counting(self.said, FRAME))
            self.said += FRAME
            await asyncio.sleep(begun + self.said / RATE_HZ - time.monotonic())

    async def listen(self, all_is_said: asyncio.Event) -> None:
        """Hear all of it."""
        while not (all_is_said.is_set() and self._is_whole()):
            self._take(await anext(self._events))

    def _is_whole(self) -> bool:
        return len(self.heard) >= 2 * (self.said - FIRST_HEARD)

    def _take(self, event: object) -> None:
        match event:
            case AudioDelta(delta=pcm):
                now = time.monotonic()
                if self._heard_at:
                    self.gaps_s.append(now - self._heard_at)
                self._heard_at = now
                self.heard += pcm
            case Reconnected():
                self.resumed += 1
            case ErrorEvent():
                self.errors += 1

    @property
    def is_intact(self) -> bool:
        """What came back is what was said, once."""
        return bytes(self.heard) == counting(FIRST_HEARD, self.said - FIRST_HEARD)


async def edge_killed(
    folder: Path,
    calls: int,
    *,
    before_s: float = 2.0,
    after_s: float = 4.0,
    again_s: Sequence[float] = (),
    by: signal.Signals = signal.SIGKILL,
) -> Outcome:
    """Hold calls at one of two gateways, kill it, and let them go on at whichever answers.

    Args:
        by: ``SIGSTOP`` makes it a black hole: the kernel takes all, and nothing comes of it.
        again_s: How long after that, and after each other, all gateways are killed once more.
    """
    async with server_process(folder, CONFIG) as server, AsyncExitStack() as stack:
        host, *edges = children(server.pid)
        victim = edges[-1]
        held: list[CountingCall] = []
        while len(held) < calls:
            call = await stack.enter_async_context(_on(server.url, victim))
            if call is not None:
                held.append(call)
        now = time.monotonic()
        said = asyncio.Event()
        last = now + before_s + sum(again_s) + after_s
        async with asyncio.TaskGroup() as group:
            talking = [group.create_task(call.talk(last)) for call in held]
            listening = [group.create_task(call.listen(said)) for call in held]
            await asyncio.sleep(before_s)
            os.kill(victim, by)
            for wait_s in again_s:
                await asyncio.sleep(wait_s)
                for edge in await asyncio.to_thread(children, server.pid):
                    if edge != host:
                        os.kill(edge, signal.SIGKILL)
            for task in talking:
                await task
            said.set()
            async with asyncio.timeout(STARTS_S):
                for task in listening:
                    await task
        worst = [max(call.gaps_s) for call in held]
        return Outcome(
            calls=calls,
            resumed=sum(call.resumed > 0 for call in held),
            intact=sum(call.is_intact for call in held),
            errors=sum(call.errors for call in held),
            worst_silence_s=round(max(worst), 3),
            median_silence_s=round(statistics.median(worst), 3),
        )


@asynccontextmanager
async def _on(url: str, edge: int) -> AsyncIterator[CountingCall | None]:
    """A call, where it was given to a certain gateway; else it is ended again at once."""
    before = await asyncio.to_thread(sockets, edge)
    async with DuplexClient.connect(url, dialect="duplex", model="echo", reconnect=QUICK) as call:
        counting_call = CountingCall(call, edge)
        await counting_call.opened()
        if await asyncio.to_thread(sockets, edge) > before:
            yield counting_call
            return
    yield None


def children(pid: int) -> list[int]:
    """Return the processes that a process has started, in that order."""
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return sorted(int(child) for child in listed)


def sockets(pid: int) -> int:
    """Return how many sockets a process has open."""
    folder = Path(f"/proc/{pid}/fd")
    return sum(os.readlink(folder / fd).startswith("socket:") for fd in os.listdir(folder))


def main() -> int:
    """Run it, print the figures, and fail where a call was harmed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=50)
    parser.add_argument("--black-hole", action="store_true", help="it hangs, and ends nothing")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        how: dict[str, Any] = {"by": signal.SIGSTOP, "after_s": 14.0} if args.black_hole else {}
        outcome = asyncio.run(edge_killed(Path(folder), args.calls, **how))
    sys.stdout.write(f"RESULT {json.dumps(asdict(outcome))}\n")
    return 0 if outcome.intact == outcome.resumed == outcome.calls else 1


if __name__ == "__main__":
    sys.exit(main())
