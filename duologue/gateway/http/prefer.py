"""What a client would rather have, in the header ``Prefer``. This module must not know requests."""

from __future__ import annotations


def wished_wait_s(prefer: str | None, limit_s: float) -> float:
    """Read how long a client would wait, from its ``Prefer: wait=SECONDS`` (RFC 7240, 4.3).

    Args:
        limit_s: Nobody waits for longer.
    """
    for preference in (prefer or "").split(","):
        name, _, value = preference.partition(";")[0].partition("=")
        if name.strip().lower() == "wait" and value.strip().isdecimal():
            return min(float(value.strip()[:6]), limit_s)
    return 0.0
