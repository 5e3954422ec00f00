from __future__ import annotations

import pytest

from duologue.gateway.http.prefer import wished_wait_s


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, 0),
        ("", 0),
        ("wait=10", 10),
        ("respond-async, wait=10", 10),
        ("Wait = 7; foo=1", 7),
        ("wait=600", 30),
        ("wait=99999999999999999999", 30),
        ("wait=-1", 0),
        ("wait=1.5", 0),
        ("wait", 0),
        ("wait=soon", 0),
        ("wait=\u0665", 5),
    ],
)
def test_how_long_a_client_would_wait(header: str | None, seconds: float) -> None:
    assert wished_wait_s(header, 30.0) == seconds
