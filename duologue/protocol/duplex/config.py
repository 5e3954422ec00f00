"""What a client of the duplex dialect may set besides the Realtime session.

This module must not know the rest of the configuration, nor what obeys it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

OverlapPolicy: TypeAlias = Literal["listen_only", "barge_in_on_speech"]
PlaybackCommitPolicy: TypeAlias = Literal["commit_all_on_done", "ack_only"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplexConfig:
    """What is in force of it in a session.

    Args:
        turns_left_to_server: The client has chosen no turn detection.
        overlap_policy: ``None``: interrupt where turns are detected.
        overlap_barge_in_ms: ``None``: as the server is set.
        playback_commit_policy: When an answer enters the conversation.
        auto_response: A turn is answered unasked.
        idle_timeout_s: ``None``: a silent client is not sent away.
        top_k: Among how many of the likeliest tokens is drawn; ``None``: as the model likes.
        seed: What is drawn depends on it; ``None``: another one in each session.
    """

    turns_left_to_server: bool = True
    overlap_policy: OverlapPolicy | None = None
    overlap_barge_in_ms: int | None = None
    playback_commit_policy: PlaybackCommitPolicy = "commit_all_on_done"
    auto_response: bool = True
    idle_timeout_s: float | None = None
    top_k: int | None = None
    seed: int | None = None
