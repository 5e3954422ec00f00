"""Stalled readers beside good ones: does a client that does not read cost anybody but itself?

Good callers listen to long answers. In every other run as many others beside them take nothing of
theirs, in the duplex dialect, until the server lets them go (1013); then they come back, resume,
and stall again. Compared are the gaps between two pieces of speech of the good ones, once the lead
is sent and the server paces: their p99 with the stalled ones over their p99 without, in the same
round. The server's memory and how full its bounds are is asked for every second.
"""

import argparse
import asyncio
import json
import random
import socket
import statistics
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml
from priority import add_urgent_option, check_urgent, go_first
from process_tree import cpu_s, resident_kib
from report import Report, Row, print_table
from servers import Running, duologue, running
from stalled_picture import draw
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

WITHOUT, WITH = "without", "with"
ANSWER = "A long answer, which is sent in pace with its playback, piece by piece. " * 20
LEAD_S = 1.0
"""Sent at once; only what comes after it is paced, and counted."""

STALL_LIMIT_S = 8.0
SMALL_BUFFER_BYTES = 4096
CALM_S = 3.0
"""How long the good ones talk before anything counts."""

GOOD_PATH = "/v1/realtime"
STALLED_PATH = "/v1/duplex?autostart=0"
TOO_SLOW = 1013
BOUNDS = ("output_buffer", "journal", "output_speech", "output_events")


def main() -> None:
    args = _arguments()
    if check_urgent(args.urgent):
        go_first()
    report = Report(
        "bench_stalled_readers",
        f"{args.good} good readers with and without {args.stalled} stalled ones beside them, "
        f"{args.seconds:g} s each, {args.rounds} rounds in one run",
    )
    for number in range(args.rounds):
        order = (WITHOUT, WITH) if number % 2 == 0 else (WITH, WITHOUT)
        for side in order:
            stalled = args.stalled if side == WITH else 0
            row = _measure(args.good, stalled, args.seconds, urgent=args.urgent)
            report.add({"round": number, "side": side, **row})
    print_table(report.rows)
    draw(report.rows, report.picture)
    report.finish(figures(report.rows, args.good, args.stalled))


def figures(rows: Sequence[Row], good: int, stalled: int) -> dict[str, Any]:
    """The RESULT line: ratios are taken within a round."""
    rounds = sorted({row["round"] for row in rows})
    pairs = [{row["side"]: row for row in rows if row["round"] == each} for each in rounds]
    attacked = [pair[WITH] for pair in pairs]
    return {
        "good": good,
        "stalled": stalled,
        "gap_p99_ratio": _ratio(pairs, "gap_p99_ms"),
        "gap_p50_ratio": _ratio(pairs, "gap_p50_ms"),
        "cpu_ratio": _ratio(pairs, "cpu_s"),
        "gap_p99_ms": [
            statistics.median(pair[side]["gap_p99_ms"] for pair in pairs)
            for side in (WITHOUT, WITH)
        ],
        "memory_mib": [max(pair[side]["memory_mib"] for pair in pairs) for side in (WITHOUT, WITH)],
        "largest_fill": max(row["fill"] for row in attacked),
        "held_mib": max(row["held_mib"] for row in attacked),
        "let_go_1013": sum(row["let_go"] for row in attacked),
        "resumed": sum(row["resumed"] for row in attacked),
    }


def _ratio(pairs: Sequence[dict[str, Row]], what: str) -> float:
    return round(statistics.median(pair[WITH][what] / pair[WITHOUT][what] for pair in pairs), 3)


def _measure(good: int, stalled: int, seconds: float, *, urgent: bool) -> Row:
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "duologue.yaml"
        places = good + 2 * stalled
        (Path(folder) / "scripted.yaml").write_text(yaml.safe_dump(_pipeline(places)))
        config.write_text(yaml.safe_dump(_config(places)))
        with running(duologue(config=config), urgent=urgent) as server:
            return asyncio.run(_run(server, good, stalled, seconds))


def _config(places: int) -> dict[str, Any]:
    return {
        "models": [{"name": "m", "plugin": "scripted", "options": {"lines": [ANSWER]}}],
        "engine": {"pipelines": [], "pipeline_files": ["scripted.yaml"]},
        "sessions": {
            "max_sessions": places,
            "send_lead_ms": int(LEAD_S * 1000),
            "stall_limit_s": STALL_LIMIT_S,
            "listening": {"vad": None, "end_of_turn": None, "asr": None},
        },
        # So long the word of the end waits for who does not read; then the line is cut.
        "gateway": {"close_timeout_s": 15.0},
        "telemetry": {"log_level": "error"},
    }


def _pipeline(places: int) -> dict[str, Any]:
    """Words, then tones, with a slot for everybody: what waits for its reader keeps its own."""
    common = {"executor": "inline", "max_jobs": places}
    words = {"name": "words", "runner": "script", "credit": 8, "edge": "text_only", **common}
    return {"name": "scripted", "stages": [words, {"name": "tones", "runner": "tone", **common}]}


class Seen:
    """What came of one run."""

    def __init__(self) -> None:
        self.gaps_s: list[float] = []
        self.counting = False
        self.let_go = self.resumed = 0
        self.held_bytes = self.fill = 0.0
        self.memory_kib = 0


async def _run(server: Running, good: int, stalled: int, seconds: float) -> Row:
    seen = Seen()
    async with asyncio.TaskGroup() as group:
        work = [group.create_task(_listen(server, seen)) for _ in range(good)]
        work += [group.create_task(_stall(server, seen)) for _ in range(stalled)]
        await asyncio.sleep(CALM_S)
        seen.counting, began_cpu_s = True, cpu_s(server.pid)
        for _ in range(round(seconds)):
            await asyncio.sleep(1)
            await _look(server, seen)
        used_s = cpu_s(server.pid) - began_cpu_s
        for each in work:
            each.cancel()
    cuts = statistics.quantiles(seen.gaps_s, n=1000)
    return {
        "gaps": len(seen.gaps_s),
        "gap_p50_ms": cuts[499] * 1000,
        "gap_p99_ms": cuts[989] * 1000,
        "gap_max_ms": max(seen.gaps_s) * 1000,
        "cpu_s": used_s,
        "memory_mib": round(seen.memory_kib / 1024, 1),
        "held_mib": round(seen.held_bytes / 2**20, 2),
        "fill": round(seen.fill, 3),
        "let_go": seen.let_go,
        "resumed": seen.resumed,
    }


async def _look(server: Running, seen: Seen) -> None:
    try:
        page = await asyncio.to_thread(server.get, "/metrics")
    except TimeoutError:
        return  # the machine is busy with something else
    figures = dict(line.rsplit(" ", 1) for line in page.splitlines() if line[:1] != "#")
    held = [v for k, v in figures.items() if k.startswith("duologue_held_bytes")]
    fills = [figures[f'duologue_bound_fill_ratio{{bound="{each}"}}'] for each in BOUNDS]
    seen.held_bytes = max(seen.held_bytes, sum(map(float, held)))
    seen.fill = max(seen.fill, *map(float, fills))
    seen.memory_kib = max(seen.memory_kib, resident_kib(server.pid))


async def _listen(server: Running, seen: Seen) -> None:
    """A good one: it listens to one answer after the other."""
    url = f"ws://127.0.0.1:{server.port}{GOOD_PATH}"
    await asyncio.sleep(random.uniform(0, CALM_S / 2))
    async with connect(url, compression=None, ping_interval=None) as line:
        await line.send('{"type":"response.create"}')
        began, last = time.monotonic(), 0.0
        async for message in line:
            now = time.monotonic()
            kind = str(message)[:80]
            if '"response.output_audio.delta"' in kind:
                if last and seen.counting:
                    seen.gaps_s.append(now - last)
                # What belongs to the lead comes in a burst, and has no pace.
                last = now if now > began + LEAD_S / 2 else 0.0
            elif '"response.done"' in kind:
                await line.send('{"type":"response.create"}')
                began, last = time.monotonic(), 0.0


async def _stall(server: Running, seen: Seen) -> None:
    """A stalled one: it reads nothing of its answer, is let go, and comes back."""
    state: dict[str, Any] = {}
    received = 0
    while True:
        line = await _connect(server)
        try:
            if state:
                await line.send(
                    json.dumps(
                        {
                            "type": "session.resume",
                            "session_id": state["session"]["id"],
                            "resume_token": state["resume_token"],
                            "last_received_server_event_seq": received,
                        }
                    )
                )
            else:
                await line.send('{"type":"session.update","session":{"turn_detection":null}}')
            greeting = json.loads(await line.recv())
            assert greeting["type"] in ("session.created", "session.resumed"), greeting
            seen.resumed += bool(state)
            state = greeting
            received = greeting.get("server_event_seq", received)
            await line.send('{"type":"response.create"}')
            await asyncio.sleep(STALL_LIMIT_S + 7)
            # Only now does it look what has become of its call.
            with suppress(ConnectionClosed):
                while True:
                    event = json.loads(await line.recv())
                    received = event.get("server_event_seq", received)
            assert line.close_code == TOO_SLOW, (line.close_code, line.close_reason)
            seen.let_go += 1
        finally:
            line.transport.abort()


async def _connect(server: Running) -> ClientConnection:
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER_BYTES)
    sock.setblocking(False)
    await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", server.port))
    url = f"ws://127.0.0.1:{server.port}{STALLED_PATH}"
    return await connect(url, sock=sock, compression=None, ping_interval=None, max_queue=1)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--good", type=int, default=50)
    parser.add_argument("--stalled", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rounds", type=int, default=2)
    add_urgent_option(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
