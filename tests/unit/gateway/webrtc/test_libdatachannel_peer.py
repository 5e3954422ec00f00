"""Run by ``make check-webrtc``, in an environment with a Python that the library has wheels for."""

from __future__ import annotations

import importlib

import pytest

from duologue.gateway.webrtc.settings import WebRtcSettings
from tests.unit.gateway.webrtc.peer_contract import PeerContract, TryOut, loopback

__all__ = ["loopback"]

pytestmark = pytest.mark.libdatachannel


def module() -> object:
    return importlib.import_module("duologue.gateway.webrtc.libdatachannel_peer")


class TestLibdatachannelPeer(PeerContract):
    @pytest.fixture
    def try_out(self) -> TryOut:
        return module().try_out  # type: ignore[attr-defined, no-any-return]


async def test_a_library_that_was_tried_out_has_a_name() -> None:
    backend = await module().try_out(WebRtcSettings())  # type: ignore[attr-defined]
    assert backend.name == "libdatachannel"
