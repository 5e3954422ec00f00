from __future__ import annotations

import msgspec

from duologue.protocol.duplex.session_patch import DuplexPatch
from duologue.protocol.session_patch import SessionPatch


def test_a_patch_changes_nothing_that_it_does_not_name() -> None:
    assert isinstance(DuplexPatch(), SessionPatch)
    assert msgspec.json.encode(DuplexPatch()) == b"{}"
