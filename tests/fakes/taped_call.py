"""A call that is recorded in memory: a question, an answer, and somebody who cuts in."""

from __future__ import annotations

from duologue.duplex_plugins.contract import Capabilities
from duologue.engines.payloads import AudioChunk, SpeechMark, TextDelta
from duologue.protocol.commands import TruncateItem
from duologue.protocol.response_events import OutputItemAdded
from duologue.sessions.recording.recording import Recording, decode_recording
from duologue.telemetry.tape import Tape
from tests.fakes.call import FakeCall
from tests.fakes.engine import FakeEngine
from tests.fakes.plugin import STAGE, FakePlugin

SECRETS = ("Wo ist der Bahnhof", "gleich links, hinter der Apotheke")
"""What the person and the model say; nowhere else in any test."""

CUT_MS = 640
"""What the client says it had played of the answer when it was interrupted."""

RATE_HZ = 24_000


class MemoryTape:
    """Everything that was recorded."""

    def __init__(self, *, content: bool) -> None:
        self.data = b""
        self._content = content

    def tape(self, _name: str) -> Tape:
        """Begin the one recording."""
        return Tape(self._write, self._content)

    def recording(self) -> Recording:
        return decode_recording(self.data)

    def _write(self, block: bytes) -> bool:
        self.data += block
        return True


def plugin() -> FakePlugin:
    """The policy of the model in the call."""
    return FakePlugin(Capabilities(reads_transcripts=True))


def interrupted_call(memory: MemoryTape | None, *more_cuts_ms: int) -> FakeCall:
    """Hold the call: the answer is cut at ``CUT_MS``, and the person's second turn is kept.

    Args:
        more_cuts_ms: Where the client says afterwards that it was.
    """
    engine = FakeEngine(pipelines=("vad", "end_of_turn", "asr", STAGE))
    call = FakeCall(plugin(), engine, tape=None if memory is None else memory.tape)
    call.hush(10)
    call.say(40)
    call.transcribe(SECRETS[0])
    call.hush(40)
    call.transcribe(SECRETS[0])
    talk = engine.of(STAGE)[-1].request.id
    engine.output(talk, TextDelta(SECRETS[1]))
    for second in range(6):
        pcm = (b"\x10\x27" * 240 + b"\xf0\xd8" * 240) * (RATE_HZ // 480)
        engine.output(talk, AudioChunk(pcm, RATE_HZ, second * RATE_HZ))
    engine.output(talk, SpeechMark(len(SECRETS[1]), 6 * RATE_HZ))
    call.hush(20)
    call.say(20)
    item = call.client.last(OutputItemAdded).item
    for cut_ms in (CUT_MS, *more_cuts_ms):
        call.send(TruncateItem(item_id=item.id, audio_end_ms=cut_ms))
    call.hush(40)
    call.session.close("client_gone")
    return call
