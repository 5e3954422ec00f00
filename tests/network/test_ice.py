"""C71: calls through address translation, with and without a relay, and through a dead network.

Real namespaces, iptables and coturn: ``make check-network`` as root.
"""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest
import yaml

from tests.network import streets
from tests.network.streets import inside

pytestmark = pytest.mark.network

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PORT = 8080
BLACK_HOLE = {"url": "stun:192.0.2.1:3478"}
RELAY = {
    "url": f"turn:{streets.TURN_ADDRESS}:3478?transport=udp",
    "username": streets.TURN_USER,
    "credential": streets.TURN_PASSWORD,
}
STUN = {"url": f"stun:{streets.TURN_ADDRESS}:3478"}
CONNECT_TIMEOUT_S = 8.0


@pytest.fixture(autouse=True)
def network(tmp_path: Path) -> Iterator[None]:
    assert streets.is_possible(), "networks can be built by root alone"
    with streets.streets(), streets.turn_server(tmp_path):
        yield


def lines_of(
    stream: IO[str],
) -> tuple[Callable[[float], dict[str, Any] | None], threading.Thread]:
    """Return a function that waits for the next line of JSON, and the thread that reads them."""
    lines: queue.Queue[dict[str, Any]] = queue.Queue(maxsize=10_000)

    def read() -> None:
        for line in stream:
            lines.put(json.loads(line))

    reader = threading.Thread(target=read, daemon=True)
    reader.start()

    def next_line(timeout_s: float) -> dict[str, Any] | None:
        try:
            return lines.get(timeout=timeout_s)
        except queue.Empty:
            return None

    return next_line, reader


@contextmanager
def server(folder: Path, **webrtc: Any) -> Iterator[None]:
    """Serve an echo, in the server's namespace."""
    settings = {
        "models": [{"name": "echo", "plugin": "echo"}],
        "engine": {"pipelines": []},
        "gateway": {
            "host": "127.0.0.1",
            "port": PORT,
            "drain_timeout_s": 0,
            "webrtc": {"connect_timeout_s": CONNECT_TIMEOUT_S, **webrtc},
        },
        "sessions": {"listening": {"vad": None, "end_of_turn": None, "asr": None}},
    }
    config = folder / "duologue.yaml"
    config.write_text(yaml.safe_dump(settings))
    process = subprocess.Popen(
        inside(streets.SERVER, sys.executable, "-m", "duologue", "serve", "--config", str(config)),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    said = []
    rest: threading.Thread | None = None
    try:
        assert process.stdout is not None
        for line in process.stdout:
            said.append(line)
            if "ready" in line and "http" in line:
                break
        else:
            raise AssertionError("the server did not start:\n" + "".join(said))
        rest = threading.Thread(target=lambda: list(process.stdout or ()), daemon=True)
        rest.start()
        yield
    finally:
        process.terminate()
        process.wait(20)
        if rest is not None:
            rest.join()
        if process.stdout is not None:
            process.stdout.close()


class Home:
    """A caller at home."""

    def __init__(self, *servers: dict[str, str]) -> None:
        given = [
            {"urls": each["url"], **{k: v for k, v in each.items() if k != "url"}}
            for each in servers
        ]
        self._process = subprocess.Popen(
            inside(streets.HOME, sys.executable, "-m", "tests.network.home", json.dumps(given)),
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdout is not None
        self.next, self._reader = lines_of(self._process.stdout)

    def call(self) -> tuple[str, float]:
        """Offer, and take the answer; returns it with how long it took."""
        offer = self.next(30)
        assert offer is not None
        posted = subprocess.run(
            inside(
                streets.SERVER,
                *(sys.executable, str(HERE / "post.py")),
                f"http://127.0.0.1:{PORT}/v1/realtime/calls",
            ),
            input=offer["offer"],
            capture_output=True,
            text=True,
            check=True,
        )
        reply = json.loads(posted.stdout)
        self.write({"answer": reply["answer"]})
        return str(reply["answer"]), float(reply["took_s"])

    def write(self, line: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(line) + "\n")
        self._process.stdin.flush()

    def hears(self, wanted: Callable[[dict[str, Any]], bool], timeout_s: float) -> bool:
        """Tell whether a line comes that is wanted."""
        deadline = time.monotonic() + timeout_s
        while (left := deadline - time.monotonic()) > 0:
            line = self.next(left)
            if line is not None and wanted(line):
                return True
        return False

    def event(self, kind: str, timeout_s: float = 10) -> bool:
        return self.hears(lambda line: line.get("event") == kind, timeout_s)

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()


@pytest.fixture
def home() -> Iterator[Callable[..., Home]]:
    made: list[Home] = []

    def make(*servers: dict[str, str]) -> Home:
        made.append(Home(*servers))
        return made[-1]

    yield make
    for each in made:
        each.stop()


def sessions() -> int:
    """How many calls the server holds."""
    code = (
        "import urllib.request,sys;"
        f"sys.stdout.write(urllib.request.urlopen('http://127.0.0.1:{PORT}/ready').read().decode())"
    )
    page = subprocess.run(
        inside(streets.SERVER, sys.executable, "-c", code), capture_output=True, check=True
    )
    return int(json.loads(page.stdout)["sessions"])


def test_c71_a_mapped_public_address_is_enough(tmp_path: Path, home: Callable[..., Home]) -> None:
    streets.map_one_to_one()
    with server(tmp_path, public_address=streets.PUBLIC_ADDRESS):
        caller = home()
        answer, took_s = caller.call()
        assert streets.PUBLIC_ADDRESS in answer
        assert streets.SERVER_ADDRESS not in answer.split("a=candidate", 1)[1]
        assert took_s < 1
        assert caller.event("session.created")


def test_c71_two_translations_meet_at_a_relay(tmp_path: Path, home: Callable[..., Home]) -> None:
    """The caller has one; it lets in the address that the answer names, from whatever port."""
    with server(tmp_path, public_address=streets.PUBLIC_ADDRESS):
        caller = home(RELAY)
        _, took_s = caller.call()
        assert took_s < 1
        assert caller.event("session.created")


@pytest.mark.parametrize("known_by", [RELAY, STUN], ids=["relay", "stun"])
def test_c71_a_relay_of_the_servers_own_is_enough(
    tmp_path: Path, home: Callable[..., Home], known_by: dict[str, str]
) -> None:
    """Nobody mapped a public address; the caller need only know what its own packets come from."""
    with server(tmp_path, ice_servers=[RELAY]):
        caller = home(known_by)
        answer, took_s = caller.call()
        assert " typ relay" in answer
        assert took_s < 1
        assert caller.event("session.created")


def test_c71_without_a_relay_the_call_is_given_up_in_time(
    tmp_path: Path, home: Callable[..., Home]
) -> None:
    """Nor does a STUN server that never answers delay ours, from none of three interfaces."""
    streets.add_interfaces(2)
    with server(tmp_path, ice_servers=[BLACK_HOLE]):
        caller = home()
        answer, took_s = caller.call()
        assert {streets.SERVER_ADDRESS, "10.77.0.2", "10.77.1.2"} <= set(answer.split())
        assert took_s < 1
        assert sessions() == 1
        assert not caller.event("session.created", CONNECT_TIMEOUT_S + 1.5)
        assert sessions() == 0


def test_c71_three_seconds_without_a_network_are_survived(
    tmp_path: Path, home: Callable[..., Home]
) -> None:
    streets.map_one_to_one()
    with server(tmp_path, public_address=streets.PUBLIC_ADDRESS):
        caller = home()
        caller.call()
        assert caller.event("session.created")
        streets.cut(True)
        time.sleep(3)
        streets.cut(False)
        caller.write({"type": "session.update", "session": {"type": "realtime"}})
        assert caller.event("session.updated", 20)
        assert sessions() == 1
