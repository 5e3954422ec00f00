from __future__ import annotations

from duologue.duplex_plugins.contract import PluginEffect
from duologue.duplex_plugins.stream_noted import StreamNoted
from duologue.engines.frame_counts import FrameCounts


def test_it_is_an_effect_and_by_itself_says_nothing_of_memory() -> None:
    noted = StreamNoted(FrameCounts(frames=1))
    assert isinstance(noted, PluginEffect)
    assert noted.remembers_ms is None
