"""What a WebRTC call costs with each library, over the loopback, as an echo.

The server decodes Opus to 24 kHz, encodes it again and sends it back: the work of a call in which
both sides talk all the time. Callers are libdatachannel connections in a process of their own that
send packets made beforehand. The libraries take turns. Needs both: `make bench-webrtc`.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.report import Report, print_table
from duologue.codecs.opus import OpusEncoder

BACKENDS = ("aiortc", "libdatachannel")
PACKET_S = 0.02
SETTLE_S = 1.0
SERVER = Path(__file__).parent / "servers" / "webrtc_echo.py"


class Server:
    """The echo server in a process of its own."""

    def __init__(self, backend: str, folder: Path) -> None:
        path = folder / f"{backend}.sock"
        path.unlink(missing_ok=True)
        self._process = subprocess.Popen(
            [sys.executable, str(SERVER), "--backend", backend, "--socket", str(path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self._process.stdout is not None
        while self._process.stdout.readline() not in (b"ready\n", b""):
            pass
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(str(path))
        self._file = self._socket.makefile("rw")

    def ask(self, **request: str) -> dict[str, Any]:
        self._file.write(json.dumps(request) + "\n")
        self._file.flush()
        return dict(json.loads(self._file.readline()))

    def stop(self) -> None:
        self._file.close()
        self._socket.close()
        self._process.kill()
        self._process.wait()


class Caller:
    """One call: sends packets that are ready, counts those that come back."""

    def __init__(self, server: Server, packets: list[bytes], number: int) -> None:
        import libdatachannel as rtc

        configuration = rtc.Configuration()
        configuration.ice_servers = []
        configuration.bind_address = "127.0.0.1"
        configuration.disable_auto_negotiation = True
        self.received = 0
        self._packets = packets
        self._number = number
        self._sent = 0
        self._connection = rtc.PeerConnection(configuration)
        media = rtc.Description.Audio("0", rtc.Description.Direction.SendRecv)
        media.add_opus_codec(111)
        media.add_ssrc(1000 + number, "caller", "caller", "audio")
        self._track = self._connection.add_track(media)
        self._track.on_message(self._on_message, lambda _text: None)
        self._channel = self._connection.create_data_channel("oai-events")
        gathered, self._opened = threading.Event(), threading.Event()
        complete = rtc.PeerConnection.GatheringState.Complete
        self._connection.on_gathering_state_change(
            lambda state: gathered.set() if state == complete else None
        )
        self._track.on_open(self._opened.set)
        self._connection.set_local_description(rtc.Description.Type.Offer)
        gathered.wait(5)
        offer = str(self._connection.local_description())
        answer = server.ask(sdp=offer)["sdp"]
        self._connection.set_remote_description(
            rtc.Description(answer, rtc.Description.Type.Answer)
        )

    def wait(self) -> None:
        if not self._opened.wait(10):
            raise SystemExit("a call was not connected within 10 s")

    def send(self) -> None:
        header = struct.pack(
            "!BBHII", 0x80, 111, self._sent & 0xFFFF, 960 * self._sent, 1000 + self._number
        )
        self._track.send(header + self._packets[self._sent % len(self._packets)])
        self._sent += 1

    def close(self) -> None:
        self._connection.close()

    def _on_message(self, message: bytes) -> None:
        if len(message) > 12 and not 192 <= message[1] <= 223:
            self.received += 1


def speech_packets() -> list[bytes]:
    """Two seconds of something like a voice, in Opus."""
    place = np.arange(48_000) / 24_000
    voice = sum(np.sin(2 * np.pi * 130 * n * place) / n for n in range(1, 12))
    loud = 5000 * np.asarray(voice) * (0.6 + 0.4 * np.sin(2 * np.pi * 3 * place))
    return OpusEncoder(24_000).encode(np.rint(loud).astype("<i2").tobytes())


def measure(backend: str, calls: int, seconds: float, folder: Path) -> dict[str, float]:
    server = Server(backend, folder)
    callers: list[Caller] = []
    try:
        idle = server.ask()
        packets = speech_packets()
        callers = [Caller(server, packets, number) for number in range(calls)]
        for caller in callers:
            caller.wait()
        start = time.monotonic()
        before, received = idle, 0
        steps = round((SETTLE_S + seconds) / PACKET_S)
        settled = round(SETTLE_S / PACKET_S)
        for step in range(steps):
            time.sleep(max(0.0, start + step * PACKET_S - time.monotonic()))
            if step == settled:
                before = server.ask()
                received = sum(caller.received for caller in callers)
            for caller in callers:
                caller.send()
        after = server.ask()
        echoed = sum(caller.received for caller in callers) - received
        return {
            "cpu_ms_per_call_s": 1000 * (after["cpu_s"] - before["cpu_s"]) / (calls * seconds),
            "delivered": echoed / (calls * (steps - settled)),
            "kb_per_call": (after["rss_kb"] - idle["rss_kb"]) / calls,
        }
    finally:
        for caller in callers:
            caller.close()
        server.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    if importlib.util.find_spec("libdatachannel") is None:
        print("libdatachannel is not installed here (it needs Python 3.12): make bench-webrtc")
        return
    report = Report("webrtc", f"{' against '.join(BACKENDS)}, {arguments.calls} echoed calls")
    taken: dict[str, list[dict[str, float]]] = {name: [] for name in BACKENDS}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(arguments.rounds):
            for name in BACKENDS:
                taken[name].append(measure(name, arguments.calls, arguments.seconds, Path(folder)))
    figures: dict[str, float] = {"calls": arguments.calls, "rounds": arguments.rounds}
    for name in BACKENDS:
        row = {key: statistics.median(each[key] for each in taken[name]) for key in taken[name][0]}
        report.add({"backend": name, **row})
        figures |= {f"{name}_{key}": round(value, 2) for key, value in row.items()}
    cost = "cpu_ms_per_call_s"
    figures["ratio"] = round(figures[f"libdatachannel_{cost}"] / figures[f"aiortc_{cost}"], 2)
    print_table(report.rows)
    report.finish(figures)


if __name__ == "__main__":
    main()
