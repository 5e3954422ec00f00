"""A partial change of a duplex session's configuration.

This module must not know what the configuration is for.
"""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from duologue.protocol.duplex.config import OverlapPolicy, PlaybackCommitPolicy
from duologue.protocol.session_patch import SessionPatch


class DuplexPatch(SessionPatch, frozen=True, kw_only=True, omit_defaults=True):
    """The body of ``session.update`` in the duplex dialect.

    May also be written flat. A null in ``turn_detection`` does not switch it off: it leaves turns
    to the server, or to a model that decides about them.
    """

    model: str | UnsetType = UNSET
    """Chosen by the first update, in place of the query's; it cannot change."""

    ref_audio: str | UnsetType | None = UNSET
    """Refused: no model here clones voices."""

    overlap_policy: OverlapPolicy | UnsetType | None = UNSET
    """What speech over an answer does; null: the default."""

    overlap_barge_in_ms: int | UnsetType | None = UNSET
    """Speech that interrupts an answer which is being heard: 0 to 10,000."""

    playback_commit_policy: PlaybackCommitPolicy | UnsetType | None = UNSET
    auto_response: bool | UnsetType | None = UNSET
    """Inside ``extra_body``. False: only ``response.create`` and commits that ask are answered."""

    idle_timeout_s: float | UnsetType | None = UNSET
    """A client that says nothing for so long is sent away: 1 to 3,600; null: it is not."""

    top_k: int | UnsetType | None = UNSET
    """Where ``supports_sampling``: among how many of the likeliest tokens the model draws, from its
    next frame on: 1 to 2,048; null: as it likes."""

    seed: int | UnsetType | None = UNSET
    """Likewise: what it draws depends on this and on what it hears: 1 to 2^53 - 1; null: another
    one in each session. It stays once the model has spoken."""


def as_duplex(patch: SessionPatch) -> DuplexPatch:
    """Return a patch of a Realtime session as one of a duplex session."""
    return DuplexPatch(**{name: getattr(patch, name) for name in patch.__struct_fields__})
