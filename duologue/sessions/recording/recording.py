"""The recording of a whole call: one header, then each thing that was done with its machine.

JSON lines in a ``*.flight.jsonl``, of version 2; the ring of a session that crashed is version 1
and holds less (``telemetry.flight``). This module must not know how a step is done again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from duologue.core.errors import CodecError
from duologue.sessions.recording.packing import Content

VERSION = 3
FORMAT = "duologue.flight"


class Header(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="format", tag=FORMAT, omit_defaults=True
):
    """How a call began.

    Args:
        model: What the client asked for.
        served: The model that it got, by its name in the settings.
        content: Whether text and audio are in the recording, or only their lengths.
        now: The machine's time of the start.
        settings: The session's, as ``SessionSettings`` reads them.
        config: The session's configuration at the start, packed.
        ids: Made at the start.
    """

    version: int
    session_id: str
    model: str
    served: str
    content: bool
    now: float
    wall_time: float
    settings: dict[str, Any]
    config: Any
    detectors: list[str]
    edge_plays: bool
    input_rate_hz: int
    output_rate_hz: int
    ids: list[str] = []


class Step(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One call of the machine.

    Args:
        call: Name of the method.
        now: When; 0 for methods that know no time.
        given: Its other arguments, packed.
        result: What it returned, packed.
        ids: Made meanwhile, in order.
        waiting_ms: Speech in the output buffer afterwards.
        raised: Type of what it raised.
    """

    call: str
    now: float = 0.0
    given: Any = ()
    result: Any = None
    ids: list[str] = []
    waiting_ms: int = 0
    raised: str = ""


@dataclass(frozen=True, slots=True)
class Recording:
    """A call.

    Args:
        cut_off: The last line is not whole: the process died, or the disk was full.
    """

    header: Header
    steps: Sequence[Step]
    cut_off: bool = False


def result_content(call: str, *, content: bool) -> Content:
    """How much a recording holds of what a step returned.

    The audio that clients got is there; what went to the engine is made of what came in.
    """
    if not content:
        return Content.NONE
    return Content.ALL if call == "pull" else Content.TEXT


def version_of(data: bytes) -> int:
    """Return the version of a flight recording of any kind.

    Raises:
        CodecError: It is none.
    """
    try:
        first = msgspec.json.decode(data.partition(b"\n")[0])
    except msgspec.DecodeError as exc:
        raise CodecError("the first line is no header of a flight recording") from exc
    if not isinstance(first, dict) or first.get("format") != FORMAT:
        raise CodecError("the first line is no header of a flight recording")
    version = first.get("version")
    if not isinstance(version, int):
        raise CodecError("the header of the recording has no version")
    return version


def decode_recording(data: bytes) -> Recording:
    """Read the recording of a whole call.

    Raises:
        CodecError: It is none, is of another version, or a line in its middle cannot be read.
    """
    version = version_of(data)
    if version != VERSION:
        raise CodecError(f"the recording has version {version}; only {VERSION} can be read here")
    first, _, rest = data.partition(b"\n")
    whole, _, last = rest.rpartition(b"\n")
    try:
        header = msgspec.json.decode(first, type=Header)
        steps = msgspec.json.Decoder(Step).decode_lines(whole)
    except msgspec.DecodeError as exc:
        raise CodecError("a line of the recording cannot be read") from exc
    return Recording(header, steps, cut_off=bool(last))
