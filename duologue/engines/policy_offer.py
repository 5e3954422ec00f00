"""What a pipeline that drives robots takes from clients, and its limits.

An observation is held against these before any work begins. This module must not know how actions
are found.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

Count = Annotated[int, msgspec.Meta(ge=1, le=4096)]
Key = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]


class PolicyOffer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys and the sizes of an observation, and the size of its answer.

    Args:
        cameras: Keys of the pictures, in the model's order. A picture is uint8, of the shape
            ``[height, width, 3]``. Maps within an observation are named with ``/`` between.
        state_key, prompt_key: Keys of the robot's state, ``[state_dim]``, and of the task in words.
        horizon, action_dim: Shape of an answer.
        steps: Of the flow, where a client does not say.
        max_prompt_bytes: Longest task, in UTF-8.
    """

    cameras: Annotated[tuple[Key, ...], msgspec.Meta(min_length=1, max_length=16)]
    state_key: Key = "observation/state"
    prompt_key: Key = "prompt"
    width: Count = 224
    height: Count = 224
    state_dim: Count = 32
    horizon: Count = 50
    action_dim: Count = 32
    steps: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 10
    max_steps: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 50
    max_prompt_bytes: Count = 48
