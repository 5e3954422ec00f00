"""Proofs that somebody knows a secret, which tell nothing of it to whoever listens.

Each end answers a random challenge of the other, so what was heard on the way opens nothing
again. Pure. This module must not know what is opened.
"""

from __future__ import annotations

import hmac

CHALLENGE_BYTES = 32
PROOF_BYTES = 32


def prove(secret: bytes, role: bytes, asked: bytes, own: bytes) -> bytes:
    """Answer a challenge.

    Args:
        secret: Empty where only friends can get so far, as at a socket that is private.
        role: Of the end that answers: its answer is of no use to the other one.
        asked: The challenge.
        own: The challenge of the end that answers.
    """
    # A digest of no key is refused by nobody.
    return hmac.digest(secret or b"\x00", role + asked + own, "sha256")


def is_proved(proof: bytes, secret: bytes, role: bytes, asked: bytes, own: bytes) -> bool:
    """Tell whether ``proof`` is the answer that whoever knows the secret would give."""
    return hmac.compare_digest(proof, prove(secret, role, asked, own))
