"""The events of OpenAI's SDK as a strict schema: a type more or less, and a test fails."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, get_args

import msgspec
from openai.types.beta.realtime.realtime_server_event import (
    RealtimeServerEvent as BetaServerEvent,
)
from openai.types.realtime import RealtimeServerEvent
from pydantic import BaseModel, TypeAdapter


class NotInTheSdk(AssertionError):
    """A server said what the SDK does not declare."""


@dataclass(frozen=True)
class SdkSchema:
    """One dialect, as the SDK declares it.

    Args:
        union: Its server events.
        more: Keys that the real server sends, though the SDK's classes leave them out.
        less: Keys that only the HTTP routes answer with, though the classes demand them.
        kinds_read_loosely: Of these events only the names are checked.
    """

    union: Any
    more: Collection[str] = ()
    less: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    kinds_read_loosely: Collection[str] = ()

    @cached_property
    def kinds(self) -> Mapping[str, TypeAdapter[BaseModel]]:
        """Classes by the type of their event."""
        found = {}
        for kind in get_args(get_args(self.union)[0]):
            (name,) = get_args(kind.model_fields["type"].annotation)
            found[name] = TypeAdapter(kind)
        return found

    def check(self, message: bytes) -> None:
        """Read one message strictly.

        Raises:
            NotInTheSdk: Its type is unknown, or an object in it has an unknown key.
            ValueError: A field is missing or has another type.
        """
        event = msgspec.json.decode(message)
        kind = self.kinds.get(event["type"])
        if kind is None:
            raise NotInTheSdk(f"there is no event {event['type']}")
        if event["type"] in self.kinds_read_loosely:
            return
        patched = _merged(event, self.less.get(event["type"], {}))
        read = kind.validate_json(msgspec.json.encode(patched), strict=True)
        unknown = set(_extra_keys(read, "")) - set(self.more)
        if unknown:
            raise NotInTheSdk(f"{event['type']} has {', '.join(sorted(unknown))}: {event}")


def _merged(event: dict[str, Any], more: Mapping[str, object]) -> dict[str, Any]:
    return event | {
        key: _merged(event[key], value) if isinstance(value, dict) and key in event else value
        for key, value in more.items()
    }


def _extra_keys(value: object, path: str) -> Iterator[str]:
    if isinstance(value, BaseModel):
        for key in value.model_extra or {}:
            yield f"{path}.{key}".lstrip(".")
        for key in type(value).model_fields:
            yield from _extra_keys(getattr(value, key), key)
    elif isinstance(value, list):
        for each in value:
            yield from _extra_keys(each, path)


GA = SdkSchema(
    RealtimeServerEvent,
    more={"session.expires_at", "session.id", "session.object", "session.temperature"},
)
BETA = SdkSchema(
    BetaServerEvent,
    more={
        "session.expires_at",
        "session.id",
        "session.object",
        "session.input_audio_noise_reduction",
        "input_token_details.cached_tokens_details",
        "input_token_details.image_tokens",
        "name",
    },
    less={
        "transcription_session.updated": {
            "session": {"client_secret": {"value": "", "expires_at": 0}}
        }
    },
)
