"""Networks with address translation in between, from namespaces of this machine (needs root).

A caller at home behind a symmetric NAT, a server in a container's bridge network behind another
one, and between them a router on which a TURN server runs:

    home 192.168.7.2 -- nat -- 203.0.113.0/24 -- street -- 198.51.100.0/24 -- bridge -- 172.18.0.2
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HOME, NAT, STREET, BRIDGE, SERVER = ("dl-home", "dl-nat", "dl-street", "dl-bridge", "dl-server")
SERVER_ADDRESS = "172.18.0.2"
PUBLIC_ADDRESS = "198.51.100.2"
TURN_ADDRESS = "198.51.100.1"
TURN_USER, TURN_PASSWORD = "caller", "sesame"

_LINKS = (
    (HOME, "192.168.7.2/24", NAT, "192.168.7.1/24"),
    (NAT, "203.0.113.2/24", STREET, "203.0.113.1/24"),
    (BRIDGE, "198.51.100.2/24", STREET, "198.51.100.1/24"),
    (SERVER, "172.18.0.2/24", BRIDGE, "172.18.0.1/24"),
)
_ROUTES = (
    (HOME, "192.168.7.1"),
    (NAT, "203.0.113.1"),
    (BRIDGE, "198.51.100.1"),
    (SERVER, "172.18.0.1"),
)


def run(*words: str) -> None:
    """Run a command to its end, which must be a good one."""
    subprocess.run(words, check=True, capture_output=True)


def inside(namespace: str, *words: str) -> list[str]:
    """The words of a command that runs in a namespace."""
    return ["ip", "netns", "exec", namespace, *words]


@contextmanager
def streets() -> Iterator[None]:
    """Build the networks, and take them away again."""
    names = (HOME, NAT, STREET, BRIDGE, SERVER)
    try:
        for name in names:
            run("ip", "netns", "add", name)
            run(*inside(name, "ip", "link", "set", "lo", "up"))
        for number, (left, left_address, right, right_address) in enumerate(_LINKS):
            ends = (f"dl{number}a", f"dl{number}b")
            run(
                *("ip", "link", "add", ends[0], "netns", left),
                *("type", "veth", "peer", "name", ends[1], "netns", right),
            )
            for name, end, address in zip(
                (left, right), ends, (left_address, right_address), strict=True
            ):
                run(*inside(name, "ip", "address", "add", address, "dev", end))
                run(*inside(name, "ip", "link", "set", end, "up"))
        for name, gateway in _ROUTES:
            run(*inside(name, "ip", "route", "add", "default", "via", gateway))
        # As on the internet, what goes to a private address is lost; the relay must not be told.
        void = ("dl-void", "type", "veth", "peer", "name", "dl-void-end")
        run(*inside(STREET, "ip", "link", "add", *void))
        run(*inside(STREET, "ip", "link", "set", "dl-void-end", "up"))
        run(*inside(STREET, "ip", "link", "set", "dl-void", "up", "arp", "off"))
        run(*inside(STREET, "ip", "route", "add", "default", "dev", "dl-void"))
        for name in (NAT, STREET, BRIDGE):
            run(*inside(name, "sysctl", "-qw", "net.ipv4.ip_forward=1"))
        _translate(NAT, "dl1a")
        _translate(BRIDGE, "dl2a")
        yield
    finally:
        for name in names:
            subprocess.run(("ip", "netns", "delete", name), check=False, capture_output=True)


@contextmanager
def turn_server(folder: Path) -> Iterator[None]:
    """Run coturn on the router between both sides."""
    process = subprocess.Popen(
        inside(
            STREET,
            *("turnserver", "-n", "--no-tls", "--no-dtls", "--no-cli", "--lt-cred-mech"),
            *("--user", f"{TURN_USER}:{TURN_PASSWORD}", "--realm", "test"),
            *("--listening-ip", TURN_ADDRESS, "--relay-ip", TURN_ADDRESS),
            *("--log-file", str(folder / "turn.log"), "--pidfile", str(folder / "turn.pid")),
            *("--userdb", str(folder / "turn.db")),
        ),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def add_interfaces(count: int) -> None:
    """Give the server more interfaces, which lead nowhere."""
    for number in range(count):
        name = f"dl-more{number}"
        pair = ("ip", "link", "add", name, "type", "veth", "peer", "name", f"{name}-end")
        run(*inside(SERVER, *pair))
        address = f"10.77.{number}.2/24"
        run(*inside(SERVER, "ip", "address", "add", address, "dev", name))
        for end in (name, f"{name}-end"):
            run(*inside(SERVER, "ip", "link", "set", end, "up"))


def map_one_to_one() -> None:
    """Let the bridge hand on what comes to its own address, as a cloud's public address does."""
    rule = ("-t", "nat", "-A", "PREROUTING", "-i", "dl2a", "-p", "udp")
    run(*inside(BRIDGE, "iptables", *rule, "-j", "DNAT", "--to-destination", SERVER_ADDRESS))


def cut(on: bool) -> None:
    """Let nothing through between the caller and the world, or all of it again."""
    for device in ("dl0b", "dl1a"):
        change = ("-I" if on else "-D", "FORWARD", "-i", device, "-j", "DROP")
        run(*inside(NAT, "iptables", *change))


def is_possible() -> bool:
    """Tell whether this user may build networks."""
    return os.geteuid() == 0


def _translate(namespace: str, device: str) -> None:
    """Every connection leaves from another port: the hardest kind of address translation."""
    rule = ("-t", "nat", "-A", "POSTROUTING", "-o", device)
    run(*inside(namespace, "iptables", *rule, "-j", "MASQUERADE", "--random-fully"))
    # What nobody inside asked for does not come in.
    for verdict in (
        ("-m", "conntrack", "--ctstate", "ESTABLISHED,RELATED,DNAT", "-j", "ACCEPT"),
        ("-j", "DROP"),
    ):
        run(*inside(namespace, "iptables", "-A", "FORWARD", "-i", device, *verdict))
