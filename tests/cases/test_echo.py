"""C22: the assistant's own voice comes back through the microphone. With recorded speech."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
import soundfile
from numpy.typing import NDArray

from duologue.codecs.resample import StreamResampler
from duologue.engines.payloads import AudioChunk
from duologue.engines.runners.contract import Job
from duologue.engines.runners.vad.energy import EnergyVadSettings, build
from duologue.protocol.append_audio import AppendAudio
from duologue.protocol.audio_formats import FormatPatch
from duologue.protocol.commands import CreateResponse
from duologue.protocol.events import SpeechStarted
from duologue.protocol.session_patch import TurnDetectionPatch
from duologue.sessions.settings import ListeningSettings, SessionSettings
from tests.cases.talk import DETECTING, Talk, listening
from tests.cases.test_detection import Detector

Floats = NDArray[np.float64]

CLIPS = Path(__file__).parents[1] / "models" / "speech"
HEARD_HZ = 16000
MIC_MS = 100
LEVEL = 10 ** (-12 / 20)
DELAY_MS = 180


class LongWindows(Detector):
    """The energy detector with the longest windows: half as many of them to judge."""

    def __init__(self) -> None:
        self.runner = build(EnergyVadSettings(threshold_dbfs=-50, window_ms=40))
        self.job = Job("vad")
        self.runner.open(self.job)


@cache
def recording(*numbers: str) -> Floats:
    """Sentences, read aloud, at 16 kHz."""
    return np.concatenate([soundfile.read(CLIPS / f"austen_{n}.flac")[0] for n in numbers])


@cache
def answer_pcm() -> bytes:
    """What the assistant says, at its own rate."""
    return StreamResampler(HEARD_HZ, 24000).process(wire(ANSWER))


def wire(samples: Floats) -> bytes:
    return (np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes()


ANSWER = recording("0870", "0880", "0890", "0930")
PERSON = recording("0930", "0870")
PERSON = PERSON[int(np.argmax(np.abs(PERSON) > 0.02)) :]


class Speakerphone(Talk):
    """A call whose microphone hears the loudspeaker."""

    def __init__(self, *, suppress: bool = True, delay_ms: int = DELAY_MS) -> None:
        settings = SessionSettings(listening=ListeningSettings(echo_suppression=suppress))
        super().__init__(DETECTING, settings=settings)
        self.engine.answers["vad"] = LongWindows()
        self.delay = HEARD_HZ * delay_ms // 1000
        by_hand = TurnDetectionPatch(type="server_vad", create_response=False)
        self.send(listening(format=FormatPatch(rate=HEARD_HZ), turn_detection=by_hand))

    def speak(self, room: Floats | None = None) -> None:
        """Let an answer be made and played, while the microphone hears it, and the room."""
        self.send(CreateResponse())
        request = self.stage().request.id
        for start in range(0, len(answer_pcm()), 48_000):
            self.engine.output(request, AudioChunk(answer_pcm()[start : start + 48_000], 24000))
        self.finish()
        heard = np.zeros(len(ANSWER) + HEARD_HZ)
        heard[self.delay : self.delay + len(ANSWER)] = LEVEL * ANSWER
        if room is not None:
            heard[: len(room)] += room[: len(heard)]
        step = HEARD_HZ * MIC_MS // 1000
        for start in range(0, len(heard) - step + 1, step):
            self.clock.advance(MIC_MS / 1000)
            self.send(AppendAudio(audio=wire(heard[start : start + step])))
            self.engine.deliver()

    def interrupted(self) -> list[bool]:
        return [reason == "turn_detected" for _, reason in self.done()]


def test_c22_ten_minutes_of_its_own_voice_interrupt_nobody() -> None:
    talk = Speakerphone()
    began = talk.clock.now()
    while talk.clock.now() < began + 600:
        talk.speak()
    assert set(talk.done()) == {("completed", None)}
    assert talk.client.of(SpeechStarted) == []
    # And then real speech on top.
    talk.speak(PERSON)
    assert talk.interrupted()[-1]
    talk.close()


@pytest.mark.parametrize("delay_ms", [20, 130, 470])
def test_c22_the_first_answer_is_not_cut_whatever_the_delay(delay_ms: int) -> None:
    talk = Speakerphone(delay_ms=delay_ms)
    talk.speak()
    assert talk.done() == [("completed", None)]
    assert talk.client.of(SpeechStarted) == []
    talk.close()


def test_c22_without_suppression_it_interrupts_itself() -> None:
    talk = Speakerphone(suppress=False)
    talk.speak()
    assert talk.interrupted() == [True]
    talk.close()


@pytest.mark.parametrize(("loudness", "within_s"), [(1.0, 0.7), (0.5, 0.8), (0.35, 1.0)])
@pytest.mark.parametrize("at_s", [2.0, 4.3, 6.6, 9.0, 12.5])
def test_c22_a_person_who_talks_over_the_echo_interrupts_soon(
    at_s: float, loudness: float, within_s: float
) -> None:
    """Aloud, at half of it, and 9 dB down, which is little more than the echo has."""
    talk = Speakerphone()
    talk.speak()
    began = talk.clock.now()
    stopped_at: list[float] = []
    talk.client.on_output = lambda: (  # type: ignore[method-assign]
        talk.client.read(),
        stopped_at.append(talk.clock.now()) if len(talk.done()) > 1 and not stopped_at else None,
    )[0]
    person = np.concatenate((np.zeros(int(at_s * HEARD_HZ)), loudness * PERSON))
    talk.speak(person)
    assert talk.interrupted() == [False, True]
    assert stopped_at[0] - began - at_s <= within_s + 1e-6
    talk.close()


def test_c22_a_person_alone_is_heard_as_ever() -> None:
    """With headphones nothing comes back, and another voice is not taken for an echo."""
    talk = Speakerphone()
    talk.send(CreateResponse())
    request = talk.stage().request.id
    talk.engine.output(request, AudioChunk(answer_pcm()[:480_000], 24000))
    talk.clock.advance(1)
    step = HEARD_HZ * MIC_MS // 1000
    for start in range(0, HEARD_HZ, step):
        talk.clock.advance(MIC_MS / 1000)
        talk.send(AppendAudio(audio=wire(PERSON[start : start + step])))
        talk.engine.deliver()
    assert talk.done() == [("cancelled", "turn_detected")]
    talk.close()
