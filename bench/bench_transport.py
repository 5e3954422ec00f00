"""What it costs to hand a large payload to another process of the same machine.

An image of 4 KiB to 16 MiB goes to a child, which reads it whole and answers with a few bytes.
Compared, interleaved: the slab (`engines/transport`), the same message within the socket, a pickle
in a pipe of multiprocessing, and a shared memory segment of its own for each payload with a lock
file, as some engines do it; ZeroMQ over TCP as well, where pyzmq is installed. Every way begins
with the same object and ends with one that is equal, and all its bytes are compared before anything
is measured. CPU is that of both processes.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import struct
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from multiprocessing import connection, shared_memory
from pathlib import Path

import matplotlib
import process_tree
from report import Report, Row, print_table

sys.path.insert(0, str(Path(__file__).parents[1]))

from duologue.engines import framing
from duologue.engines.media_payloads import ImageData
from duologue.engines.messages import Apart, Append, Freed
from duologue.engines.transport import apart
from duologue.engines.transport.memory_file import MemoryFile
from duologue.engines.transport.slab import Region, SlabReader, SlabStore
from duologue.engines.transport.slab_seat import Seat, offer_seat, take_seat

matplotlib.use("Agg")

from matplotlib import pyplot  # the backend is chosen first

SLAB, SOCKET, PIPE, SEGMENT, ZEROMQ = "slab", "socket", "pickle, pipe", "new segment", "ZeroMQ tcp"
SLAB_BYTES = 64 * 2**20
SIZES = [2**n for n in range(12, 25)]
ANSWER = struct.Struct("<Q")

Send = Callable[[ImageData], None]
"""Hands a payload over and waits for the answer."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.25, help="for each size in each round")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        kind, fd = args.child
        CHILDREN[kind](socket.socket(fileno=int(fd)))
        return
    kinds = [kind for kind in CHILDREN if kind != ZEROMQ or find_spec("zmq")]
    report = Report("bench_transport", f"a payload to another process: {', '.join(kinds)}")
    sides = {kind: Side(kind) for kind in kinds}
    for size in SIZES:
        for side in sides.values():
            side.check(size)
    for number in range(args.rounds):
        for size in SIZES:
            for kind in kinds if number % 2 == 0 else kinds[::-1]:
                report.add({"round": number, **sides[kind].measure(size, args.seconds)})
    for side in sides.values():
        side.end()
    lines = [summary(size, kinds, report.rows) for size in SIZES]
    print_table(lines)
    draw(lines, kinds, report.picture)
    by_size = {line["KiB"]: line for line in lines}
    worth_it = [
        line["KiB"]
        for line in lines
        if line["KiB"] * 1024 >= apart.LEAST_BYTES and line["socket / slab, CPU"] >= 1
    ]
    report.finish(
        {
            "slab_cheaper_from_kib": min(worth_it, default=None),
            **{
                f"{other}_over_slab_{unit}": {
                    f"{kib} KiB": round(by_size[kib][f"{other} / slab, {unit}"], 2)
                    for kib in (64, 1024, 16384)
                }
                for other in kinds
                if other != SLAB
                for unit in ("CPU", "time")
            },
        }
    )


class Side:
    """One way, with its child."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        ours, theirs = socket.socketpair()
        with theirs:
            self._child = subprocess.Popen(
                [sys.executable, __file__, "--child", kind, str(theirs.fileno())],
                pass_fds=(theirs.fileno(),),
            )
        self._link = ours
        self._send: Send = PARENTS[kind](ours)

    def check(self, size: int) -> None:
        """Send bytes whose checksum the child must find."""
        self._send(ImageData(b"\x01" + os.urandom(size - 1), "png", 8, 8))

    def measure(self, size: int, seconds: float) -> Row:
        """Send payloads of one size for a while."""
        payload = ImageData(bytes(size), "png", 8, 8)
        self._send(payload)
        times = []
        cpu = time.process_time() + process_tree.cpu_s(self._child.pid)
        end = time.perf_counter() + seconds
        while not times or time.perf_counter() < end:
            begun = time.perf_counter()
            self._send(payload)
            times.append(time.perf_counter() - begun)
        cpu = time.process_time() + process_tree.cpu_s(self._child.pid) - cpu
        return {
            "kind": self.kind,
            "bytes": size,
            "count": len(times),
            "p50_us": statistics.median(times) * 1e6,
            "cpu_us": cpu / len(times) * 1e6,
        }

    def end(self) -> None:
        """Let the child go."""
        self._link.shutdown(socket.SHUT_RDWR)
        self._link.close()
        self._child.wait(10)


def digest(data: bytes) -> int:
    """Tell payloads apart; of zeros it costs nothing, so that only the way is measured."""
    return zlib.crc32(data) if data[0] else len(data)


def answered(link: socket.socket, payload: ImageData) -> None:
    (found,) = ANSWER.unpack(link.recv(ANSWER.size, socket.MSG_WAITALL))
    assert found == digest(payload.data), "not what was sent"


# --- the slab, and the socket alone --------------------------------------------------------------


def send_by_slab(link: socket.socket) -> Send:
    memory = MemoryFile.create("bench")
    regions = [Region(memory.grow(SLAB_BYTES), SLAB_BYTES) for _ in range(2)]
    offer_seat(link, memory, Seat(*regions, 1))
    store, reader = SlabStore(memory, regions[0]), framing.FrameReader()

    def send(payload: ImageData) -> None:
        messages = [Append("job", payload)]
        # As where large payloads are expected, see ``apart.Outlook``.
        (piece,) = apart.split(messages, store.put)
        goes_apart = isinstance(piece, Apart)
        frames = (
            framing.encode_apart(piece)
            if isinstance(piece, Apart)
            else framing.encode_messages(messages)
        )
        link.sendall(frames)
        answered(link, payload)
        bodies: list[bytes] = []
        while goes_apart and not bodies:
            bodies = reader.feed(link.recv(65536))
        for body in bodies:
            freed = framing.decode_apart(body)
            assert isinstance(freed, Freed)
            store.free(freed.handles[0])

    return send


def read_slab(link: socket.socket) -> None:
    seat = take_seat(link)
    assert seat is not None
    slab, frames = SlabReader(seat[0]), framing.FrameReader()
    while data := link.recv(256 * 1024):
        for body in frames.feed(data):
            freed = b""
            if body[0] == framing.APART:
                message = framing.decode_apart(body)
                assert isinstance(message, Apart)
                found = apart.whole(message, slab.get)
                handles = tuple(part.handle for part in message.parts)
                freed = framing.encode_apart(Freed(handles))
            else:
                (found,) = framing.decode_messages(body)
            link.sendall(ANSWER.pack(digest(found.payload.data)) + freed)


def send_by_socket(link: socket.socket) -> Send:
    def send(payload: ImageData) -> None:
        link.sendall(framing.encode_messages([Append("job", payload)]))
        answered(link, payload)

    return send


def read_socket(link: socket.socket) -> None:
    frames = framing.FrameReader()
    while data := link.recv(256 * 1024):
        for body in frames.feed(data):
            (found,) = framing.decode_messages(body)
            link.sendall(ANSWER.pack(digest(found.payload.data)))


# --- the others ----------------------------------------------------------------------------------


def send_by_pipe(link: socket.socket) -> Send:
    pipe = connection.Connection(os.dup(link.fileno()))

    def send(payload: ImageData) -> None:
        pipe.send(Append("job", payload))
        answered(link, payload)

    return send


def read_pipe(link: socket.socket) -> None:
    pipe = connection.Connection(os.dup(link.fileno()))
    try:
        while True:
            link.sendall(ANSWER.pack(digest(pipe.recv().payload.data)))
    except EOFError:
        pass


def send_by_segment(link: socket.socket) -> Send:
    import fcntl
    import pickle

    def send(payload: ImageData) -> None:
        data = pickle.dumps(Append("job", payload), protocol=5)
        segment = shared_memory.SharedMemory(create=True, size=len(data))
        with open(
            f"/dev/shm{segment.name}.lock"
            if segment.name[0] == "/"
            else f"/dev/shm/{segment.name}.lock",
            "wb",
        ) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            segment.buf[: len(data)] = data
        words = f"{segment.name} {len(data)}".encode()
        link.sendall(struct.pack("<I", len(words)) + words)
        answered(link, payload)
        segment.close()
        segment.unlink()

    return send


def read_segment(link: socket.socket) -> None:
    import fcntl
    import pickle
    from multiprocessing import resource_tracker

    # Both ends of Python 3.11 would each remove the segment; the one that made it does.
    resource_tracker.register = lambda *_: None  # type: ignore[assignment]
    while head := link.recv(4, socket.MSG_WAITALL):
        name, size = link.recv(struct.unpack("<I", head)[0], socket.MSG_WAITALL).split()
        path = f"/dev/shm/{name.decode().lstrip('/')}.lock"
        segment = shared_memory.SharedMemory(name=name.decode())
        with open(path, "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            found = pickle.loads(segment.buf[: int(size)])
        os.unlink(path)
        segment.close()
        link.sendall(ANSWER.pack(digest(found.payload.data)))


def send_by_zeromq(link: socket.socket) -> Send:
    import zmq

    pair = zmq.Context.instance().socket(zmq.PAIR)
    link.sendall(ANSWER.pack(pair.bind_to_random_port("tcp://127.0.0.1")))

    def send(payload: ImageData) -> None:
        pair.send(framing.encode_messages([Append("job", payload)]), copy=False)
        answered(link, payload)

    return send


def read_zeromq(link: socket.socket) -> None:
    import zmq

    pair = zmq.Context.instance().socket(zmq.PAIR)
    pair.connect(f"tcp://127.0.0.1:{ANSWER.unpack(link.recv(ANSWER.size))[0]}")
    poller = zmq.Poller()
    poller.register(pair, zmq.POLLIN)
    poller.register(link, zmq.POLLIN)
    while True:
        ready = dict(poller.poll())
        if pair not in ready:
            return
        frame = pair.recv(copy=False).buffer
        (found,) = framing.decode_messages(frame[4:])
        link.sendall(ANSWER.pack(digest(found.payload.data)))


PARENTS = {
    SLAB: send_by_slab,
    SOCKET: send_by_socket,
    PIPE: send_by_pipe,
    SEGMENT: send_by_segment,
    ZEROMQ: send_by_zeromq,
}
CHILDREN = {
    SLAB: read_slab,
    SOCKET: read_socket,
    PIPE: read_pipe,
    SEGMENT: read_segment,
    ZEROMQ: read_zeromq,
}


def summary(size: int, kinds: Sequence[str], rows: Sequence[Row]) -> Row:
    """Medians, and the median of the ratios within each round."""
    mine = [row for row in rows if row["bytes"] == size]
    by_round = {(row["kind"], row["round"]): row for row in mine}
    rounds = sorted({row["round"] for row in mine})
    line: Row = {"KiB": size // 1024}
    for kind in kinds:
        line[f"{kind}, us"] = statistics.median(
            row["p50_us"] for row in mine if row["kind"] == kind
        )
    for kind in kinds:
        if kind != SLAB:
            for unit, column in (("CPU", "cpu_us"), ("time", "p50_us")):
                line[f"{kind} / slab, {unit}"] = statistics.median(
                    by_round[kind, n][column] / by_round[SLAB, n][column] for n in rounds
                )
    return line


def draw(lines: Sequence[Row], kinds: Sequence[str], path: Path) -> None:
    figure, axes = pyplot.subplots(figsize=(7, 4), layout="constrained")
    for kind in kinds:
        axes.loglog(
            [line["KiB"] for line in lines], [line[f"{kind}, us"] for line in lines], label=kind
        )
    axes.axvline(
        apart.LEAST_BYTES / 1024, color="grey", linestyle=":", label="goes by slab from here"
    )
    axes.set(
        title="A payload to another process, and its answer", xlabel="KiB", ylabel="us, median"
    )
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=130)
    pyplot.close(figure)


if __name__ == "__main__":
    main()
