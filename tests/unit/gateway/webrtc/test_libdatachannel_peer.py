"""Run by ``make check-webrtc``, in an environment with a Python that the library has wheels for."""

from __future__ import annotations

import asyncio
import importlib
import threading

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


async def test_callbacks_are_waited_for_until_the_library_has_dropped_them() -> None:
    lent = module().LentCallbacks(asyncio.get_running_loop())  # type: ignore[attr-defined]
    heard: list[int] = []
    held = [lent.lend(heard.append), lent.lend(heard.append)]
    held[0](1)
    assert heard == [1]
    assert not await lent.wait_back(0)
    dropping = threading.Thread(target=held.clear)
    dropping.start()
    assert await lent.wait_back(5)
    dropping.join()
