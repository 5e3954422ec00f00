"""The doctor's eyes: what this machine has. Nothing is changed, nothing is fetched.

This module must not judge what it finds.
"""

from __future__ import annotations

import errno
import http.client
import os
import re
import shutil
import socket
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

import msgspec

from duologue.clients.errors import AudioDeviceError
from duologue.clients.sound_card import sound_devices
from duologue.commands.doctor.facts import (
    ExtraFacts,
    MachineFacts,
    PortFacts,
    SoundFacts,
    WeightFacts,
)
from duologue.core.installation import duologue_program, pip_program

EXTRAS = ("server", "local", "audio", "webrtc", "ray")
_LEAST_PYTHON = re.compile(r"python_version\s*>=\s*['\"](\d+)\.(\d+)")
_TIMEOUT_S = 1.0
_MAX_PAGE_BYTES = 65536
_DEFAULT_HOST, _DEFAULT_PORT = "127.0.0.1", 8080


class _Model(msgspec.Struct):
    owned_by: str = ""


class _Models(msgspec.Struct):
    data: tuple[_Model, ...]


def look(*, verify: bool = False, port: int = _DEFAULT_PORT) -> MachineFacts:
    """Return the facts of this machine.

    Args:
        verify: Hash the weights, which reads all of them.
        port: The one that is to be free.
    """
    extras = tuple(ExtraFacts(name, missing_packages(name)) for name in EXTRAS)
    weights, cache_dir = _weights(verify) if not extras[0].missing else ((), Path.cwd())
    return MachineFacts(
        python=sys.version_info[:3],
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1,
        load=os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        memory_bytes=available_memory(Path("/proc/meminfo")),
        extras=extras,
        cache_dir=str(cache_dir),
        free_disk_bytes=shutil.disk_usage(existing_parent(cache_dir)).free,
        cache_writable=can_be_written(cache_dir),
        weights=weights,
        port=probe_port(_DEFAULT_HOST, port),
        sound=probe_sound(),
        pip=pip_program(),
        duologue=duologue_program(),
    )


def missing_packages(extra: str) -> tuple[str, ...]:
    """Return the packages of an extra that are not installed, other extras of ours included."""
    return tuple(sorted(_missing(extra, frozenset())))


def _missing(extra: str, seen: frozenset[str]) -> set[str]:
    try:
        requirements = metadata.requires("duologue") or []
    except metadata.PackageNotFoundError:
        return {"duologue"}
    missing: set[str] = set()
    for requirement in requirements:
        name, _, condition = requirement.partition(";")
        if f'extra == "{extra}"' not in condition.replace("'", '"'):
            continue
        if not is_for_python(condition, sys.version_info[:2]):
            continue
        package = requirement_name(name)
        if package == "duologue":
            inner = requirement_extra(name)
            if inner and inner not in seen:
                missing |= _missing(inner, seen | {extra})
        elif not _is_installed(package):
            missing.add(package)
    return missing


def is_for_python(condition: str, version: tuple[int, int]) -> bool:
    """Tell whether a requirement's condition lets in a version of Python, of its least one."""
    least = _LEAST_PYTHON.search(condition)
    return least is None or version >= (int(least[1]), int(least[2]))


def requirement_name(requirement: str) -> str:
    """Return the package that a requirement names: ``aiohttp`` of ``aiohttp<4,>=3``."""
    name = requirement.strip()
    for end, character in enumerate(name):
        if not (character.isalnum() or character in "-_."):
            return name[:end]
    return name


def requirement_extra(requirement: str) -> str:
    """Return the extra that a requirement names: ``server`` of ``duologue[server]``."""
    _, bracket, rest = requirement.partition("[")
    return rest.partition("]")[0].strip() if bracket else ""


def available_memory(meminfo: Path) -> int | None:
    """Return the bytes of memory that programs may still take, where the system tells."""
    try:
        lines = meminfo.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return None
    values: Mapping[str, str] = dict(line.split(":", 1) for line in lines if ":" in line)
    words = values.get("MemAvailable", "").split()
    return int(words[0]) * 1024 if words and words[0].isdigit() else None


def existing_parent(folder: Path) -> Path:
    """Return the folder, or the nearest one above it that exists."""
    for place in (folder, *folder.parents):
        if place.exists():
            return place
    return Path("/")


def can_be_written(folder: Path) -> bool:
    """Tell whether a folder can be written, or made; where a file has its name it cannot."""
    place = existing_parent(folder)
    return place.is_dir() and os.access(place, os.W_OK)


def probe_port(host: str, port: int) -> PortFacts:
    """Return who holds a port of this machine, if anybody does."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as exc:
            if exc.errno != errno.EADDRINUSE:
                return PortFacts(host, port, exc.strerror or str(exc))
        else:
            return PortFacts(host, port, "")
    return PortFacts(host, port, _who_answers(host, port))


def probe_sound() -> SoundFacts:
    """Return the microphones and loudspeakers."""
    try:
        devices = sound_devices()
    except AudioDeviceError as exc:
        return SoundFacts((), (), exc.message)
    return SoundFacts(
        tuple(device.name for device in devices if device.inputs),
        tuple(device.name for device in devices if device.outputs),
    )


def _who_answers(host: str, port: int) -> str:
    connection = http.client.HTTPConnection(host, port, timeout=_TIMEOUT_S)
    try:
        connection.request("GET", "/v1/models")
        answer = connection.getresponse()
        if _lists_our_models(answer.read(_MAX_PAGE_BYTES)):
            return "duologue"
        return answer.getheader("Server") or "a web server"
    except (OSError, http.client.HTTPException):
        return "another program"
    finally:
        connection.close()


def _lists_our_models(page: bytes) -> bool:
    try:
        models = msgspec.json.decode(page, type=_Models).data
    except msgspec.MsgspecError:
        return False
    return any(model.owned_by == "duologue" for model in models)


def _weights(verify: bool) -> tuple[tuple[WeightFacts, ...], Path]:
    # Only the server's packages can read the manifest, and the doctor works without them.
    from duologue.artifacts import ArtifactSettings, Store
    from duologue.artifacts.manifest import Kind

    store = Store(ArtifactSettings())
    wanted = store.manifest.profile("default")
    here = [status for status in store.status() if status.artifact.id in wanted]
    problems: dict[str, str] = {}
    if verify:
        for verdict in store.verify([each.artifact.id for each in here if each.state == "ready"]):
            if verdict.problems:
                problems[verdict.artifact.id] = verdict.problems[0].message
    facts = tuple(
        WeightFacts(
            id=status.artifact.id,
            size_bytes=status.artifact.size_bytes,
            state=str(status.state),
            problem=problems.get(status.artifact.id, ""),
            is_library=status.artifact.kind is Kind.LIBRARY,
        )
        for status in here
    )
    return facts, store.cache_dir


def _is_installed(package: str) -> bool:
    try:
        metadata.distribution(package)
    except metadata.PackageNotFoundError:
        return False
    return True
