from __future__ import annotations

import sys

import pytest

from duologue.gateway.webrtc.backend import BACKENDS, load_backend
from duologue.gateway.webrtc.peer import BackendMissing
from duologue.gateway.webrtc.settings import WebRtcSettings


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Nothing of what a call needs can be imported."""
    for name in BACKENDS:
        monkeypatch.setitem(sys.modules, f"duologue.gateway.webrtc.{name}_peer", None)
    return monkeypatch


async def test_the_library_of_the_settings_is_loaded_and_tried_out() -> None:
    assert (await load_backend(WebRtcSettings(backend="aiortc"))).name == "aiortc"


async def test_without_the_best_library_the_next_one_will_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert (await load_backend(WebRtcSettings())).name == "aiortc"
    monkeypatch.setitem(sys.modules, "duologue.gateway.webrtc.aiortc_peer", None)
    monkeypatch.setitem(sys.modules, "duologue.gateway.webrtc.libdatachannel_peer", None)
    with pytest.raises(BackendMissing):
        await load_backend(WebRtcSettings())


async def test_without_any_library_is_said_what_to_install(without: pytest.MonkeyPatch) -> None:
    with pytest.raises(BackendMissing, match=r"pip install 'duologue\[webrtc\]'"):
        await load_backend(WebRtcSettings())


async def test_a_library_that_was_asked_for_is_not_replaced(without: pytest.MonkeyPatch) -> None:
    with pytest.raises(BackendMissing, match="'libdatachannel' is not installed"):
        await load_backend(WebRtcSettings(backend="libdatachannel"))
