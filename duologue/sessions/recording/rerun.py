"""Does a recorded call again with a fresh machine, and says where it went another way.

Pure: no clock, no engine, no socket. Ids come from the recording, so that what a client said about
them means the same. This module must not know files or pictures.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from duologue.core.errors import DuologueError
from duologue.duplex_plugins.contract import DuplexPlugin
from duologue.sessions.machine import SessionMachine
from duologue.sessions.recording.packing import pack, unpack
from duologue.sessions.recording.recording import Recording, Step, result_content
from duologue.sessions.settings import SessionSettings

MAX_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Difference:
    """A step that came out differently.

    Args:
        number: Of the step, from 0; its line in the file is two later.
        at_s: Seconds since the call began.
    """

    number: int
    at_s: float
    call: str
    recorded: str
    again: str


@dataclass(frozen=True, slots=True)
class Rerun:
    """What became of a call that was done again.

    Args:
        differences: The first of them; the rest is often a consequence.
        different: How many there are.
    """

    steps: int
    differences: Sequence[Difference]
    different: int


def rerun(recording: Recording, plugin: DuplexPlugin) -> Rerun:
    """Do a call again.

    Args:
        plugin: The policy of the model that was served.

    Raises:
        CodecError: The recording holds something that this version does not know.
    """
    header = recording.header
    ids = deque(header.ids)
    made = 0

    def next_id(prefix: str) -> str:
        nonlocal made
        if ids and ids[0].startswith(f"{prefix}_"):
            return ids.popleft()
        made += 1
        return f"{prefix}_again{made}"

    machine = SessionMachine(
        header.session_id,
        header.model,
        plugin,
        unpack(header.config),
        SessionSettings.model_validate(header.settings),
        detectors=frozenset(header.detectors),
        new_id=next_id,
        now=header.now,
        wall_time=header.wall_time,
        edge_plays=header.edge_plays,
    )
    differences: list[Difference] = []
    different = 0
    at_s = 0.0
    for number, step in enumerate(recording.steps):
        at_s = step.now - header.now if step.now else at_s
        ids = deque(step.ids)
        again, raised = _do(machine, step, content=header.content)
        if again == step.result and raised == step.raised:
            continue
        different += 1
        if len(differences) < MAX_SHOWN:
            was, now = step.raised or _shown(step.result), raised or _shown(again)
            if was == now:
                was, now = _apart(step.result, again, was)
            differences.append(Difference(number, at_s, step.call, was, now))
    return Rerun(len(recording.steps), differences, different)


def _do(machine: SessionMachine, step: Step, *, content: bool) -> tuple[Any, str]:
    given = unpack(step.given)
    try:
        result: object
        match step.call:
            case "open":
                result = machine.open(step.now)
            case "apply":
                result = machine.apply(given[0], step.now)
            case "judge":
                result = machine.judge(given[0])
            case "on_timer":
                result = machine.on_timer(step.now)
            case "pull":
                result = machine.pull(step.now, given[0])
            case "played":
                machine.played(*given)
                result = None
            case "acknowledge":
                machine.acknowledge(step.now)
                result = None
            case "outlive":
                machine.outlive()
                result = None
            case "detach":
                machine.detach(step.now)
                result = None
            case "reattach":
                machine.reattach(step.now, given[0])
                result = None
            case "inherit":
                machine.inherit(tuple(given[0]), unanswered=given[1])
                result = None
            case "close":
                result = machine.close(given[0], step.now)
            case "crash":
                result = machine.crash(given[0])
            case other:
                return None, f"unknown step {other}"
    except DuologueError as exc:
        return None, type(exc).__name__
    return pack(result, result_content(step.call, content=content)), ""


def _apart(was: Any, now: Any, where: str) -> tuple[str, str]:
    """Where two results of the same kinds first differ, and by what."""
    pairs: list[tuple[str, Any, Any]] = []
    if isinstance(was, dict) and isinstance(now, dict):
        pairs = [(key, was.get(key), now.get(key)) for key in {**was, **now}]
    elif isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        pairs = [(str(n), old, new) for n, (old, new) in enumerate(zip(was, now, strict=True))]
    for key, old, new in pairs:
        if old != new:
            return _apart(old, new, f"{where} {key}")
    return f"{where}: {was}", f"{where}: {now}"


def _shown(packed: Any) -> str:
    """The kinds of what came out, in order, with what tells two of a kind apart."""
    if isinstance(packed, list):
        return ", ".join(filter(None, map(_shown, packed))) or "nothing"
    if isinstance(packed, dict):
        if "$list" in packed:
            return _shown(packed["$list"]) if packed["$list"] else ""
        plain = [f"{k}={v}" for k, v in packed.items() if k != "$" and isinstance(v, str | int)]
        kind = packed.get("$", "").rpartition(".")[2]
        return f"{kind}({', '.join(plain)})"
    return "" if packed is None else str(packed)
