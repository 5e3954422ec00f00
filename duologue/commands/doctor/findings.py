"""The doctor's judgement: from facts to findings, each with what to do. Pure.

This module must not look at the machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from duologue.commands.doctor.facts import MachineFacts

LEAST_PYTHON = (3, 11)
LEAST_CORES = 2
LEAST_MEMORY_BYTES = 2_000_000_000
"""The local models take some 1.1 GB together."""

BUSY_LOAD_PER_CORE = 1.5
FREE_DISK_MARGIN = 2.0
"""While weights are unpacked, they lie on the disk twice."""

NEEDED_EXTRAS = ("server", "local")
OPTIONAL_EXTRAS = {
    "audio": "duologue talk",
    "webrtc": "calls over WebRTC",
    "ray": "stages on several machines",
}


class Severity(Enum):
    """How bad a finding is."""

    FINE = "ok"
    HINT = "hint"
    """Something is slower or missing, but the demonstration runs."""

    BLOCKED = "missing"
    """``duologue demo`` could not run."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Args:
        fix: What to do; empty where nothing is wrong.
    """

    what: str
    severity: Severity
    saw: str
    fix: str = ""


def examine(facts: MachineFacts) -> list[Finding]:
    """Return all findings, in the order in which they are best mended."""
    return [
        _python(facts),
        *_extras(facts),
        _cores(facts),
        _memory(facts),
        *_weights(facts),
        _disk(facts),
        _port(facts),
        _sound(facts),
        _browser(facts),
    ]


def can_run_demo(findings: list[Finding]) -> bool:
    """Tell whether nothing is in the way of ``duologue demo``."""
    return all(finding.severity is not Severity.BLOCKED for finding in findings)


def _python(facts: MachineFacts) -> Finding:
    version = ".".join(str(part) for part in facts.python)
    if facts.python[:2] >= LEAST_PYTHON:
        return Finding("Python", Severity.FINE, version)
    return Finding(
        "Python",
        Severity.BLOCKED,
        f"{version}, the least is {LEAST_PYTHON[0]}.{LEAST_PYTHON[1]}",
        "install a newer one, then: make PYTHON=/path/to/python3.12 setup",
    )


def _extras(facts: MachineFacts) -> Iterator[Finding]:
    for extra in facts.extras:
        what = f"packages of [{extra.name}]"
        if not extra.missing:
            yield Finding(what, Severity.FINE, "installed")
            continue
        needed = extra.name in NEEDED_EXTRAS
        use = OPTIONAL_EXTRAS.get(extra.name, "")
        yield Finding(
            what,
            Severity.BLOCKED if needed else Severity.HINT,
            f"not installed: {', '.join(extra.missing)}",
            f"{facts.pip} install 'duologue[{extra.name}]'" + (f"  (for {use})" if use else ""),
        )


def _cores(facts: MachineFacts) -> Finding:
    load = "" if facts.load is None else f", load {facts.load:.1f}"
    saw = f"{facts.cores}{load}"
    if facts.cores < LEAST_CORES:
        return Finding("cores", Severity.HINT, saw, "answers will be slow with fewer than 2")
    if facts.load is not None and facts.load > BUSY_LOAD_PER_CORE * facts.cores:
        return Finding(
            "cores", Severity.HINT, saw, "other programs are busy: answers will come later"
        )
    return Finding("cores", Severity.FINE, saw)


def _memory(facts: MachineFacts) -> Finding:
    if facts.memory_bytes is None:
        return Finding("memory", Severity.FINE, "not known on this system")
    saw = f"{facts.memory_bytes / 1e9:.1f} GB available"
    if facts.memory_bytes < LEAST_MEMORY_BYTES:
        return Finding("memory", Severity.HINT, saw, "the models take 1.1 GB: close other programs")
    return Finding("memory", Severity.FINE, saw)


def _weights(facts: MachineFacts) -> Iterator[Finding]:
    for weight in facts.weights:
        size = f"{weight.size_bytes / 1e6:,.0f} MB"
        what = f"weights {weight.id}"
        if weight.problem:
            yield Finding(what, Severity.BLOCKED, weight.problem, _get(facts, weight.id))
        elif weight.state == "ready":
            yield Finding(what, Severity.FINE, size)
        elif weight.is_library:
            yield Finding(
                what, Severity.BLOCKED, "not installed", f"{facts.pip} install 'duologue[local]'"
            )
        else:
            # The demonstration fetches what is missing, so nothing is in its way.
            yield Finding(what, Severity.HINT, f"{weight.state}, {size}", _get(facts, weight.id))


def _disk(facts: MachineFacts) -> Finding:
    missing = sum(
        weight.size_bytes
        for weight in facts.weights
        if weight.state != "ready" and not weight.is_library
    )
    saw = f"{facts.free_disk_bytes / 1e9:.1f} GB free for {facts.cache_dir}"
    if not facts.cache_writable:
        return Finding(
            "disk",
            Severity.BLOCKED if missing else Severity.HINT,
            f"{facts.cache_dir} cannot be written",
            "set DUOLOGUE_CACHE to a folder of yours",
        )
    if facts.free_disk_bytes < FREE_DISK_MARGIN * missing:
        return Finding(
            "disk",
            Severity.BLOCKED,
            f"{saw}, {FREE_DISK_MARGIN * missing / 1e9:.1f} GB are needed",
            "make room, or set DUOLOGUE_CACHE to a folder on another disk",
        )
    return Finding("disk", Severity.FINE, saw)


def _port(facts: MachineFacts) -> Finding:
    port = facts.port
    what = f"port {port.port}"
    if not port.taken_by:
        return Finding(what, Severity.FINE, "free")
    if port.taken_by == "duologue":
        return Finding(what, Severity.FINE, f"a Duologue answers at http://localhost:{port.port}")
    return Finding(
        what,
        Severity.HINT,
        f"taken ({port.taken_by})",
        f"choose another one: {facts.duologue} serve --gateway.port 8081 "
        "(the demo takes any free one)",
    )


def _sound(facts: MachineFacts) -> Finding:
    sound = facts.sound
    if sound.problem:
        return Finding("sound", Severity.HINT, sound.problem)
    if not sound.inputs or not sound.outputs:
        lacks = [
            name
            for name, found in (("microphone", sound.inputs), ("loudspeaker", sound.outputs))
            if not found
        ]
        return Finding(
            "sound",
            Severity.HINT,
            f"no {' and no '.join(lacks)}",
            f"use files: {facts.duologue} talk --wav in.wav --out out.wav; "
            "or a browser on another machine",
        )
    return Finding("sound", Severity.FINE, f"{sound.inputs[0]} / {sound.outputs[0]}")


def _browser(facts: MachineFacts) -> Finding:
    host = facts.port.host
    if host in ("127.0.0.1", "localhost", "::1"):
        return Finding(
            "browser",
            Severity.FINE,
            f"the page at http://localhost:{facts.port.port} may use the microphone; from another "
            "machine it needs HTTPS, or: ssh -L 8080:localhost:8080 THIS_MACHINE",
        )
    return Finding(
        "browser",
        Severity.HINT,
        f"the server listens on {host}",
        "browsers give a microphone to localhost and HTTPS pages alone: put a TLS proxy in front, "
        "or use: ssh -L 8080:localhost:8080 THIS_MACHINE",
    )


def _get(facts: MachineFacts, artifact_id: str) -> str:
    return f"{facts.duologue} models pull {artifact_id}"
