from __future__ import annotations

import pytest

from duologue.gateway.webrtc.aiortc_peer import NAME, try_out
from duologue.gateway.webrtc.settings import WebRtcSettings
from tests.unit.gateway.webrtc.peer_contract import PeerContract, TryOut, loopback

__all__ = ["loopback"]


class TestAiortcPeer(PeerContract):
    @pytest.fixture
    def try_out(self) -> TryOut:
        return try_out


async def test_a_library_that_was_tried_out_has_a_name() -> None:
    assert (await try_out(WebRtcSettings())).name == NAME
