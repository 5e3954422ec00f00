"""Settings of phone calls."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, SecretStr, field_validator

from duologue.config import Section


class TelephonySettings(Section):
    """Phone calls, which carriers stream over WebSocket."""

    public_url: str | None = None
    """How carriers reach this server, as ``https://voice.example.org``; unless it is set, the
    address of the request is taken."""

    twilio_auth_token: SecretStr | None = None
    """With it, Twilio needs no API key: its requests are signed, and the signature is checked."""

    model: str | None = None
    """The model that answers; the first one unless set."""

    instructions: str | None = None
    """What the model is told about its role on the phone."""

    voice: str | None = None
    """The voice that answers."""

    greeting: str = "Greet the caller in one short sentence and ask how you can help."
    """What the model is told so that it speaks first; empty: the caller does."""

    lead_ms: Annotated[int, Field(ge=40, le=2000)] = 200
    """How far ahead of its being heard speech is sent: more survives a rougher network, less
    leaves less for an interruption to take back."""

    keypad_pause_s: Annotated[float, Field(gt=0, le=30)] = 2.0
    """A pause that ends what a caller types; ``#`` ends it at once."""

    max_calls: Annotated[int, Field(ge=1)] | None = None
    """Phone calls at once that a signature or our own answer to Twilio has let in."""

    start_timeout_s: Annotated[float, Field(gt=0, le=60)] = 10.0
    """A carrier that has connected must say so soon what the call is."""

    @field_validator("public_url")
    @classmethod
    def _is_an_address(cls, value: str | None) -> str | None:
        if value is None:
            return None
        if not value.startswith(("https://", "http://")):
            raise ValueError("must begin with https:// or http://")
        return value.rstrip("/")
