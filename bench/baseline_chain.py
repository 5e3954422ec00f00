"""The baseline: five models called one after the other, as a first version of a voice chain would.

Silero VAD -> smart-turn -> Whisper tiny.en -> Qwen2.5-Coder-0.5B -> hibari, on the same models as
Duologue's embedded default but with none of its code: no gateway, no streaming of partial results,
no work ahead except that recognition starts at the first pause. A question is heard in real time.

Runs as a child process. Requests and replies are JSON, one a line:

    {"do": "turn", "audio": "question.flac", "answer": "answer.wav"}   hear and answer a question
    {"do": "transcribe", "audio": "speech.wav"}                        what the recogniser hears

Times in the reply count from the end of speech in the question's audio.
"""

import os

# Before any native library loads: spinning for long costs a busy machine up to four times, and
# not at all up to three. As our language model has it, so that the ratio is none of environments.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("GOMP_SPINCOUNT", "1000")

import argparse
import json
import re
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
from baseline_models import ChatModel, EndOfTurn, Recogniser, Voice, VoiceActivity
from cache import models_folder
from log_mel import SAMPLE_RATE_HZ, Floats
from speech import at_rate, first_audible_s, speech_end_s

LEAD_S = 0.3
TAIL_S = 3.0
NOISE = 2e-4
PEAK = 0.5

SPEECH_ABOVE = 0.5
SILENCE_BELOW = 0.35
ONSET_WINDOWS = 4
RECOGNISE_AT_WINDOWS = 3
ASK_SMART_TURN_AT_WINDOWS = 6
GIVE_UP_AT_WINDOWS = 22
PREFIX_SAMPLES = 4800
COMPLETE_ABOVE = 0.5

CLAUSE = re.compile(r"[.!?](\s|$)|[,;:]\s")
MIN_CLAUSE_WORDS = 3
MAX_CLAUSE_WORDS = 12


@dataclass
class Turn:
    """What one question led to; seconds count from the start of the stream."""

    end_of_turn_s: float = 0.0
    timed_out: bool = False
    recognised_s: float = 0.0
    heard: str = ""
    first_token_s: float = 0.0
    first_clause_s: float = 0.0
    first_audio_s: float = 0.0
    reply: str = ""
    audio: list[Floats] = field(default_factory=list)


class Chain:
    """The five models and the loop over them."""

    def __init__(self, folder: Path) -> None:
        self.vad = VoiceActivity(folder)
        self.end_of_turn = EndOfTurn(folder)
        self.recogniser = Recogniser(folder)
        self.chat = ChatModel(folder)
        self.voice = Voice()

    def warm_up(self) -> None:
        silence = np.zeros(SAMPLE_RATE_HZ, np.float32)
        self.vad.probability(silence[: VoiceActivity.WINDOW_SAMPLES])
        self.end_of_turn.probability(silence)
        self.recogniser.text(silence)
        self.chat.answer("Hi", lambda _text: None)
        self.voice.speak("Hello.")

    def answer(self, stream: Floats) -> Turn:
        """Hear the stream in real time until the turn ends, then answer."""
        turn, start = Turn(), time.monotonic()

        def now_s() -> float:
            return time.monotonic() - start

        self._listen(stream, turn, now_s)
        spoken = 0

        def on_text(piece: str) -> None:
            nonlocal spoken
            turn.first_token_s = turn.first_token_s or now_s()
            turn.reply += piece
            if spoken:
                return
            if (end := clause_end(turn.reply)) is not None:
                turn.first_clause_s = now_s()
                turn.audio.append(self.voice.speak(turn.reply[:end].strip()))
                turn.first_audio_s = now_s()
                spoken = end

        self.chat.answer(turn.heard, on_text)
        rest = turn.reply[spoken:].strip()
        if not spoken:
            turn.first_clause_s = now_s()
        if rest:
            turn.audio.append(self.voice.speak(rest))
        turn.first_audio_s = turn.first_audio_s or now_s()
        return turn

    def _listen(self, stream: Floats, turn: Turn, now_s: Callable[[], float]) -> None:
        self.vad.reset()
        recognition: threading.Thread | None = None
        begin: int | None = None
        silent = end = 0

        def recognise(upto: int) -> None:
            assert begin is not None
            turn.heard = self.recogniser.text(stream[max(0, begin - PREFIX_SAMPLES) : upto])

        size = VoiceActivity.WINDOW_SAMPLES
        for end in range(size, len(stream) + 1, size):
            if (ahead := end / SAMPLE_RATE_HZ - now_s()) > 0:
                time.sleep(ahead)
            speech = self.vad.probability(stream[end - size : end])
            if begin is None:
                if speech > SPEECH_ABOVE:
                    begin = max(0, end - ONSET_WINDOWS * size)
                continue
            if speech >= SILENCE_BELOW:
                silent = 0
                if recognition is not None and not recognition.is_alive():
                    recognition = None  # it heard only the part before the pause
                continue
            silent += 1
            if silent == RECOGNISE_AT_WINDOWS and recognition is None:
                recognition = threading.Thread(target=recognise, args=(end,))
                recognition.start()
            if silent == ASK_SMART_TURN_AT_WINDOWS:
                if self.end_of_turn.probability(stream[begin:end]) > COMPLETE_ABOVE:
                    break
            elif silent >= GIVE_UP_AT_WINDOWS:
                turn.timed_out = True
                break
        turn.end_of_turn_s = now_s()
        if begin is None:
            raise SystemExit("no speech was found in the question")
        if recognition is None:
            recognition = threading.Thread(target=recognise, args=(end,))
            recognition.start()
        recognition.join()
        turn.recognised_s = now_s()


def clause_end(text: str) -> int | None:
    """Where the first clause ends that is worth speaking; None while there is none."""
    found = CLAUSE.search(text)
    if found and len(text[: found.end()].split()) >= MIN_CLAUSE_WORDS:
        return found.end()
    return len(text) if len(text.split()) > MAX_CLAUSE_WORDS else None


def take_turn(chain: Chain, audio: Floats, answer_path: Path | None) -> dict[str, Any]:
    audio = audio * (PEAK / np.abs(audio).max())
    lead, tail = int(LEAD_S * SAMPLE_RATE_HZ), int(TAIL_S * SAMPLE_RATE_HZ)
    stream = np.pad(audio, (lead, tail))
    stream += np.random.default_rng(0).normal(0, NOISE, len(stream))
    turn = chain.answer(stream.astype(np.float32))
    spoken = np.concatenate(turn.audio) if turn.audio else np.zeros(0, np.float32)
    if answer_path is not None:
        soundfile.write(answer_path, spoken, Voice.SAMPLE_RATE_HZ)
    end = LEAD_S + speech_end_s(audio, SAMPLE_RATE_HZ)
    quiet_s = first_audible_s(spoken, Voice.SAMPLE_RATE_HZ)
    return {
        "heard": turn.heard,
        "reply": turn.reply.strip(),
        "end_of_turn_s": turn.end_of_turn_s - end,
        "recognised_s": turn.recognised_s - end,
        "first_token_s": turn.first_token_s - end,
        "first_clause_s": turn.first_clause_s - end,
        "first_audio_s": turn.first_audio_s - end,
        "first_audible_s": None if quiet_s is None else turn.first_audio_s - end + quiet_s,
        "audio_s": len(spoken) / Voice.SAMPLE_RATE_HZ,
        "timed_out": turn.timed_out,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=Path, default=models_folder())
    args = parser.parse_args()
    # Native libraries print what they please: keep the reply channel for replies.
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def reply(value: dict[str, Any]) -> None:
        print(json.dumps(value), file=replies, flush=True)

    chain = Chain(args.models)
    chain.warm_up()
    reply({"ready": True})
    for line in sys.stdin:
        request = json.loads(line)
        samples, rate_hz = soundfile.read(request["audio"], dtype="float32")
        audio = at_rate(samples, int(rate_hz), SAMPLE_RATE_HZ)
        if request["do"] == "turn":
            path = request.get("answer")
            reply(take_turn(chain, audio, Path(path) if path else None))
        else:
            reply({"text": chain.recogniser.text(audio, beam_size=5)})
    # The language model's threads do not always end by themselves.
    os._exit(0)


if __name__ == "__main__":
    main()
