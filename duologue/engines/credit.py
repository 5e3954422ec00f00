"""What an output costs of a job's credit. Must not know who grants credit, or why."""

from __future__ import annotations

from duologue.core.audio import SAMPLE_BYTES
from duologue.engines.media_payloads import StepsDone
from duologue.engines.payloads import AudioChunk, CodeFrames, Payload, SpeechMark, TokenUsage


def cost(payload: Payload) -> int:
    """Milliseconds for audio, frames for codes, nothing for what describes other outputs, else 1.

    Were marks charged, a caller that grants back what it has played would run dry by and by.
    """
    match payload:
        case AudioChunk(pcm=pcm, rate_hz=rate_hz):
            return len(pcm) * 1000 // (SAMPLE_BYTES * rate_hz)
        case CodeFrames():
            return payload.count
        case SpeechMark() | TokenUsage() | StepsDone():
            return 0
        case _:
            return 1
