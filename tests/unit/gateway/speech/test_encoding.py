from __future__ import annotations

from pathlib import Path

import pytest

from duologue.codecs.containers import OutputFormat
from duologue.codecs.containers.wav import wav_header
from duologue.gateway.speech.encoding import NO_SPEECH, SpeechFile
from tests.fakes.sound_files import RATE_HZ, tone
from tests.patience import until

PCM = tone(0.5).tobytes()


@pytest.mark.parametrize("audio_format", OutputFormat)
async def test_a_file_is_written_piece_by_piece(audio_format: OutputFormat) -> None:
    file = await SpeechFile.begin(audio_format)

    first = await file.add(PCM)
    last = await file.end()

    assert len(first) > 1000
    assert (last == b"") is (audio_format in (OutputFormat.WAV, OutputFormat.PCM))


async def test_a_length_that_is_known_stands_in_the_header() -> None:
    file = await SpeechFile.begin(OutputFormat.WAV, len(PCM))

    assert await file.add(PCM) + await file.end() == wav_header(RATE_HZ, len(PCM)) + PCM


@pytest.mark.parametrize("audio_format", OutputFormat)
async def test_a_file_without_speech_can_be_played_all_the_same(audio_format: OutputFormat) -> None:
    file = await SpeechFile.begin(audio_format)

    written = await file.add(b"") + await file.end()

    if audio_format is OutputFormat.WAV:
        assert written == wav_header(RATE_HZ) + NO_SPEECH
    else:
        assert written


async def test_a_file_that_was_closed_holds_no_codec_whoever_still_knows_it() -> None:
    file = await SpeechFile.begin(OutputFormat.MP3)
    await file.add(PCM)
    before = threads()
    file.close()
    await until(lambda: threads() < before)  # the thread that encoded lets go of it, too


def threads() -> int:
    return len(list(Path("/proc/self/task").iterdir()))
