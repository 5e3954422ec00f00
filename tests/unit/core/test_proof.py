from __future__ import annotations

import pytest

from duologue.core.proof import CHALLENGE_BYTES, PROOF_BYTES, is_proved, prove

ASKED, OWN = b"a" * CHALLENGE_BYTES, b"b" * CHALLENGE_BYTES


@pytest.mark.parametrize("secret", [b"", b"sixteen bytes..."])
def test_who_knows_the_secret_is_believed(secret: bytes) -> None:
    proof = prove(secret, b"host", ASKED, OWN)
    assert len(proof) == PROOF_BYTES
    assert is_proved(proof, secret, b"host", ASKED, OWN)


@pytest.mark.parametrize(
    ("secret", "role", "asked", "own"),
    [
        (b"another", b"host", ASKED, OWN),
        (b"secret", b"edge", ASKED, OWN),
        (b"secret", b"host", OWN, OWN),
        (b"secret", b"host", OWN, ASKED),
        (b"", b"host", ASKED, OWN),
    ],
)
def test_a_proof_is_of_no_use_for_anything_else(
    secret: bytes, role: bytes, asked: bytes, own: bytes
) -> None:
    assert not is_proved(prove(b"secret", b"host", ASKED, OWN), secret, role, asked, own)


def test_what_is_no_proof_at_all_is_not_believed() -> None:
    assert not is_proved(b"", b"secret", b"host", ASKED, OWN)
