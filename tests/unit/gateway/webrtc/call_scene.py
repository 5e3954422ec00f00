"""A call over WebRTC with a fake peer, a fake engine, and time that the test moves."""

from __future__ import annotations

import json

from duologue.codecs.opus import OpusDecoder
from duologue.core.wheel import TimerWheel
from duologue.engines.payloads import AudioChunk
from duologue.gateway.webrtc.call import Call
from duologue.gateway.webrtc.offer import read_offer
from duologue.gateway.webrtc.settings import WebRtcSettings
from tests.cases.talk import DETECTING, READS, Talk
from tests.fakes.peer import FakeBackend, FakePeer
from tests.unit.codecs.tones import tone
from tests.unit.gateway.webrtc.offers import CHROMIUM

FRAME_S = 0.02


class CallScene(Talk):
    """What a person says goes in through the peer; what they hear comes out there."""

    def __init__(self, sdp: str = CHROMIUM, settings: WebRtcSettings | None = None) -> None:
        super().__init__(DETECTING, READS)
        self.session.close("closed")
        offer = read_offer(sdp)
        self.session = self.manager.open(None, edge_plays=offer.audio is not None)
        self.machine = self.session.machine
        self.library = FakeBackend()
        wheel = TimerWheel(self.clock.call_at)
        self.call = Call(
            "rtc_1", offer, self.session, settings or WebRtcSettings(), self.clock, wheel
        )

    @property
    def peer(self) -> FakePeer:
        return self.library.peer

    async def connect(self) -> None:
        """Answer, and let events and audio flow."""
        await self.call.answer(self.library.backend, None)  # type: ignore[arg-type]
        self.call.on_connected()
        if self.call.offer.data_mid is not None:
            self.call.on_channel_open()

    def message(self, type_: str, **fields: object) -> None:
        """Say something on the data channel."""
        self.call.on_message(json.dumps({"type": type_, **fields}).encode())

    def play(self, frames: int) -> None:
        """Let so much be played."""
        for _ in range(frames):
            self.clock.advance(FRAME_S)

    def ask(self) -> None:
        """Say something by hand and ask for an answer."""
        self.call.on_audio(bytes(2 * 24 * 600))
        self.message("input_audio_buffer.commit")
        self.message("response.create")
        self.transcribe("a question")

    def sound(self, ms: int) -> str:
        """Let the newest answer sound a tone; returns the response's id."""
        stage = self.stage()
        pcm = tone(24_000, ms / 1000)
        for start in range(0, len(pcm), 4800):
            self.engine.output(stage.request.id, AudioChunk(pcm[start : start + 4800], 24_000))
        return str(stage.request.fence.lane)

    def heard(self, start: int = 0) -> list[bytes]:
        """What each packet sounds like, from one on."""
        decoder = OpusDecoder(24_000)
        decoded = [decoder.decode(payload) for payload, _ in self.peer.audio]
        return decoded[start:]


def loud(pcm: bytes) -> bool:
    return max(map(abs, memoryview(pcm).cast("h"))) > 1000
