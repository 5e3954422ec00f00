"""What a robot sends, against what a policy takes; nothing is worked on before this.

This module must not know sockets, nor how actions are found.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from duologue.core.errors import ProtocolError
from duologue.engines.policy_offer import PolicyOffer
from duologue.engines.policy_payloads import DecideActions
from duologue.protocol.errors import ErrorCode, over_limit, refused, shown
from duologue.protocol.openpi import Array, Values

STEPS_KEY = "sampling_params/num_inference_steps"
_CONTROL_KEYS = ("endpoint", "session_id", "seed", STEPS_KEY)
_MAX_SESSION_ID_CHARS = 256
_MAX_SEED = 2**63 - 1


def is_reset(values: Values) -> bool:
    """Tell whether a message begins an episode anew, instead of asking for actions.

    Raises:
        ProtocolError: It wants something else.
    """
    endpoint = values.get("endpoint", "infer")
    if not isinstance(endpoint, str) or endpoint not in ("infer", "reset"):
        raise refused(f"endpoint is {shown(endpoint)}; it may be infer or reset", "endpoint")
    return endpoint == "reset"


def observation_of(values: Values, offer: PolicyOffer, drawn: int) -> DecideActions:
    """Return the request for an observation.

    Args:
        drawn: The seed where the client names none.

    Raises:
        ProtocolError: A value is missing, unknown, or not what the policy takes.
        LimitExceeded: One is over its limit.
    """
    taken = (*offer.cameras, offer.state_key, offer.prompt_key, *_CONTROL_KEYS)
    for name in values:
        if name not in taken:
            raise refused(
                f"{shown(name)} is nothing that this policy takes; it takes: {', '.join(taken)}",
                name,
                ErrorCode.UNKNOWN_PARAMETER,
            )
    session_id = values.get("session_id", "")
    if not isinstance(session_id, str) or len(session_id) > _MAX_SESSION_ID_CHARS:
        raise refused(f"session_id is text of {_MAX_SESSION_ID_CHARS} characters", "session_id")
    return DecideActions(
        tuple(_picture(values, name, offer) for name in offer.cameras),
        _state(values, offer),
        _prompt(values, offer),
        _number(values, STEPS_KEY, offer.steps, 1, offer.max_steps),
        _number(values, "seed", drawn, 0, _MAX_SEED),
    )


def description(name: str, offer: PolicyOffer) -> Mapping[str, object]:
    """Return what a client is told when it connects, before anything else."""
    return {
        "type": "policy_server_config",
        "model": name,
        "image_resolution": (offer.height, offer.width),
        "n_external_cameras": len(offer.cameras),
        "needs_wrist_camera": False,
        "needs_stereo_camera": False,
        "needs_session_id": False,
        "camera_keys": offer.cameras,
        "state_key": offer.state_key,
        "state_dim": offer.state_dim,
        "prompt_key": offer.prompt_key,
        "action_space": "continuous",
        "action_keys": ("actions",),
        "action_dim": offer.action_dim,
        "action_horizon": offer.horizon,
        "default_action_horizon": offer.horizon,
        "max_action_horizon": offer.horizon,
    }


def _picture(values: Values, name: str, offer: PolicyOffer) -> bytes:
    picture = _array(values, name)
    wanted = (offer.height, offer.width, 3)
    if picture.dtype != np.uint8 or picture.shape != wanted:
        raise refused(
            f"{name} is {picture.dtype.name} {list(picture.shape)}; "
            f"it must be uint8 {list(wanted)}",
            name,
        )
    return picture.tobytes()


def _state(values: Values, offer: PolicyOffer) -> bytes:
    state = _array(values, offer.state_key)
    if state.shape != (offer.state_dim,):
        raise refused(
            f"{offer.state_key} is {list(state.shape)}; it must be {[offer.state_dim]}",
            offer.state_key,
        )
    with np.errstate(over="ignore", invalid="ignore"):
        numbers = state.astype("<f4")
    if not np.isfinite(numbers).all():
        raise refused(f"{offer.state_key} has values that are no finite float32", offer.state_key)
    return numbers.tobytes()


def _array(values: Values, name: str) -> Array:
    value = _present(values, name)
    if not isinstance(value, np.ndarray):
        raise refused(f"{name} is {type(value).__name__}; it must be an array", name)
    return value


def _prompt(values: Values, offer: PolicyOffer) -> str:
    prompt = _present(values, offer.prompt_key)
    if not isinstance(prompt, str):
        raise refused(f"{offer.prompt_key} is {type(prompt).__name__}; it must be text", None)
    if (size := len(prompt.encode())) > (limit := offer.max_prompt_bytes):
        raise over_limit(offer.prompt_key, size, limit, offer.prompt_key, "bytes")
    return prompt


def _present(values: Values, name: str) -> object:
    if name not in values:
        raise ProtocolError(f"{name} is missing", code=ErrorCode.MISSING_PARAMETER, param=name)
    return values[name]


def _number(values: Values, name: str, default: int, least: int, most: int) -> int:
    value = values.get(name, default)
    if isinstance(value, np.ndarray) and value.shape == () and value.dtype.kind in "iu":
        value = int(value)
    if type(value) is not int or not least <= value <= most:
        raise refused(f"{name} is {shown(value)}; it must be {least} to {most}", name)
    return value
