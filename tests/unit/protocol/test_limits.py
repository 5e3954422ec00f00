from __future__ import annotations

import base64

from duologue.protocol import limits


def test_the_largest_append_fits_into_the_largest_message() -> None:
    envelope = b'{"event_id":"' + b"e" * limits.MAX_EVENT_ID_CHARS + b'","type":"","audio":""}'
    audio = base64.b64encode(bytes(limits.MAX_APPEND_BYTES))
    assert len(envelope) + len(audio) <= limits.MAX_MESSAGE_BYTES


def test_every_limit_says_its_unit() -> None:
    sizes = ("_BYTES", "_CHARS", "_MS", "_LEVELS")
    counts = ("_PARTS", "_ITEMS", "_TOOLS", "_PAIRS", "_VALUES")
    names = [name for name in vars(limits) if name.isupper()]
    assert len(names) > 10
    assert [name for name in names if not name.endswith(sizes + counts)] == []
