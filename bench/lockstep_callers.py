"""Callers of bench_lockstep_gateway, in a process of their own: each sends 80 ms every 80 ms.

Each has a phase of its own. The times of answers are read from their first samples, which say when
the model had made them (see ``costed_lm``). Writes one line of JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import time

import numpy as np
from websockets.asyncio.client import ClientConnection, connect

MESSAGE_S = 0.080
FRAME_BYTES = 3840
OPENING_S = 0.06
OPEN = json.dumps(
    {
        "type": "session.update",
        "session": {"type": "realtime", "audio": {"input": {"turn_detection": None}}},
    }
)


class Caller:
    """One call."""

    def __init__(self) -> None:
        self.sent = 0
        self.latencies_ms: list[float] = []
        self.late_ms: list[float] = []
        self.frames = 0
        self.errors: list[str] = []
        self.counts = False

    async def hold(self, url: str, phase_s: float, message: str, until: float) -> None:
        async with connect(url, max_size=None, compression=None, open_timeout=60) as socket:
            await socket.send(OPEN)
            async with asyncio.TaskGroup() as group:
                listening = group.create_task(self._listen(socket))
                following = asyncio.get_running_loop().time() + phase_s
                while following < until:
                    await asyncio.sleep(max(0, following - asyncio.get_running_loop().time()))
                    if self.counts:
                        late_s = asyncio.get_running_loop().time() - following
                        self.late_ms.append(1000 * late_s)
                    await socket.send(message)
                    self.sent += self.counts
                    following += MESSAGE_S
                listening.cancel()

    async def _listen(self, socket: ClientConnection) -> None:
        async for text in socket:
            if '"response.output_audio.delta"' in text[:120]:
                now_ms = int(time.monotonic() * 1000)
                pcm = base64.b64decode(json.loads(text)["delta"])
                for begin in range(0, len(pcm) - FRAME_BYTES + 1, FRAME_BYTES):
                    high, low = np.frombuffer(pcm[begin : begin + 4], "<i2").tolist()
                    if self.counts:
                        self.frames += 1
                        if high >= 0 and low >= 0:
                            age = (now_ms - (high << 15 | low)) % (1 << 30)
                            self.latencies_ms += [age] if age < 10_000 else []
            elif '"type":"error"' in text[:60]:
                self.errors.append(text[:200])


async def run(url: str, calls: int, warm_s: float, seconds: float) -> None:
    noise = 3000 * np.random.default_rng(2).standard_normal(FRAME_BYTES // 2)
    message = json.dumps(
        {
            "type": "input_audio_buffer.append",
            "audio": base64.b64encode(noise.astype("<i2").tobytes()).decode(),
        }
    )
    callers = [Caller() for _ in range(calls)]
    opening_s = OPENING_S * calls
    until = asyncio.get_running_loop().time() + opening_s + warm_s + seconds

    async def begin(number: int, caller: Caller) -> None:
        await asyncio.sleep(OPENING_S * number)
        await caller.hold(url, MESSAGE_S * number / calls, message, until)

    async def count() -> None:
        await asyncio.sleep(opening_s + warm_s)
        print("counting", flush=True)
        for caller in callers:
            caller.counts = True

    async with asyncio.TaskGroup() as group:
        group.create_task(count())
        for number, caller in enumerate(callers):
            group.create_task(begin(number, caller))
    late = np.array([each for caller in callers for each in caller.late_ms])
    ages = np.array([age for caller in callers for age in caller.latencies_ms] or [np.nan])
    print(
        json.dumps(
            {
                "sent": sum(caller.sent for caller in callers),
                "heard_frames": sum(caller.frames for caller in callers),
                "caller_late_p99_ms": round(float(np.quantile(late, 0.99)), 1),
                "silent_calls": sum(not caller.frames for caller in callers),
                "host_p50_ms": float(np.quantile(ages, 0.5)),
                "host_p99_ms": float(np.quantile(ages, 0.99)),
                "host_max_ms": float(ages.max()),
                "errors": [error for caller in callers for error in caller.errors][:3],
            }
        ),
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--calls", type=int, required=True)
    parser.add_argument("--warm-seconds", type=float, default=5)
    parser.add_argument("--seconds", type=float, default=20)
    args = parser.parse_args()
    asyncio.run(run(args.url, args.calls, args.warm_seconds, args.seconds))


if __name__ == "__main__":
    main()
