from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from duologue.commands.doctor.facts import ExtraFacts, PortFacts, SoundFacts, WeightFacts
from duologue.commands.doctor.findings import Finding, Severity, can_run_demo, examine
from tests.unit.commands.doctor.facts import HEALTHY

BIG = WeightFacts("brain", 500_000_000, "missing")


def found(what: str, **changes: Any) -> Finding:
    """The finding about one thing, on a machine that differs from a healthy one."""
    findings = examine(replace(HEALTHY, **changes))
    (finding,) = [each for each in findings if each.what == what]
    return finding


def test_a_healthy_machine_needs_nothing() -> None:
    findings = examine(HEALTHY)
    assert {finding.severity for finding in findings} == {Severity.FINE}
    assert not any(finding.fix for finding in findings)
    assert can_run_demo(findings)


BLOCKED = [
    ("Python", {"python": (3, 10, 9)}, "make PYTHON="),
    (
        "packages of [local]",
        {"extras": (ExtraFacts("local", ("ctranslate2",)),)},
        "pip install 'duologue[local]'",
    ),
    (
        "packages of [server]",
        {"extras": (ExtraFacts("server", ("aiohttp", "rich")),)},
        "pip install 'duologue[server]'",
    ),
    (
        "weights ears",
        {"weights": (WeightFacts("ears", 1, "ready", "wrong hash"),)},
        "duologue models pull ears",
    ),
    (
        "weights voice",
        {"weights": (WeightFacts("voice", 1, "missing", is_library=True),)},
        "pip install 'duologue[local]'",
    ),
    ("disk", {"weights": (BIG,), "free_disk_bytes": 900_000_000}, "DUOLOGUE_CACHE"),
    ("disk", {"weights": (BIG,), "cache_writable": False}, "DUOLOGUE_CACHE"),
]


@pytest.mark.parametrize(("what", "changes", "fix"), BLOCKED)
def test_what_the_demonstration_cannot_do_without_is_missing(
    what: str, changes: dict[str, Any], fix: str
) -> None:
    finding = found(what, **changes)
    assert finding.severity is Severity.BLOCKED
    assert fix in finding.fix
    assert not can_run_demo(examine(replace(HEALTHY, **changes)))


HINTS = [
    ("cores", {"cores": 1}, "slow"),
    ("cores", {"load": 9.0}, "busy"),
    ("memory", {"memory_bytes": 500_000_000}, "1.1 GB"),
    ("weights brain", {"weights": (BIG,)}, "duologue models pull brain"),
    ("disk", {"cache_writable": False}, "DUOLOGUE_CACHE"),
    ("port 8080", {"port": PortFacts("127.0.0.1", 8080, "nginx")}, "--gateway.port"),
    ("sound", {"sound": SoundFacts((), ("Speaker",))}, "--wav"),
    ("browser", {"port": PortFacts("0.0.0.0", 8080, "")}, "ssh -L"),
    (
        "packages of [audio]",
        {"extras": (ExtraFacts("audio", ("sounddevice",)),)},
        "duologue talk",
    ),
]


@pytest.mark.parametrize(("what", "changes", "fix"), HINTS)
def test_what_makes_it_slower_or_poorer_is_a_hint(
    what: str, changes: dict[str, Any], fix: str
) -> None:
    finding = found(what, **changes)
    assert finding.severity is Severity.HINT
    assert fix in finding.fix
    assert can_run_demo(examine(replace(HEALTHY, **changes)))


def test_the_microphone_that_is_missing_is_named() -> None:
    assert found("sound", sound=SoundFacts((), ())).saw == "no microphone and no loudspeaker"
    assert found("sound", sound=SoundFacts((), (), "no PortAudio")).saw == "no PortAudio"


def test_a_duologue_that_runs_already_is_fine() -> None:
    finding = found("port 8080", port=PortFacts("127.0.0.1", 8080, "duologue"))
    assert finding.severity is Severity.FINE
    assert "http://localhost:8080" in finding.saw


def test_a_system_that_tells_little_is_no_problem() -> None:
    findings = examine(replace(HEALTHY, load=None, memory_bytes=None))
    assert {finding.severity for finding in findings} == {Severity.FINE}
