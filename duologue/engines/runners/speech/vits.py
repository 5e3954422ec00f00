"""VITS (``VitsModel``, as the MMS voices): a clause at once, given in pieces.

The model makes all of a clause in one pass, so there is no talker and no codec: one stage. Pieces
are given one a step, so that a cancel takes effect between them and a job without credit stops.

Source:
    Kim et al., "Conditional variational autoencoder with adversarial learning for end-to-end
    text-to-speech" (2021); the class in transformers.
"""

from __future__ import annotations

import hashlib
import secrets
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, cast

import msgspec
import torch
from transformers import VitsModel, VitsTokenizer

from duologue.codecs.pcm import float_to_pcm
from duologue.core.audio import SAMPLE_BYTES, ms_to_samples
from duologue.core.errors import ConfigError, EngineError
from duologue.engines.payloads import AudioChunk, Payload, SpeakText, SpeechMark
from duologue.engines.runners.contract import Job, Step
from duologue.engines.runners.registry import RunnerType

_WARM_UP = SpeakText("Hello.", 0)
_SEED_BITS = 31


class VitsSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of ``vits``. Voices are numbers of speakers, where there are several.

    Args:
        folder: A checkpoint as ``save_pretrained`` writes it, with its tokenizer.
        device: As torch names it.
        voice: For clauses that ask for none.
        seed: How a text is said depends on this alone; 0: it is never said the same way.
        chunk_ms: Length of each piece.
        threads: Of torch on a CPU; 0: as torch likes.
    """

    folder: str
    device: str = "cpu"
    voice: str = "0"
    seed: Annotated[int, msgspec.Meta(ge=0, lt=1 << _SEED_BITS)] = 0
    chunk_ms: Annotated[int, msgspec.Meta(ge=20, le=1000)] = 200
    threads: Annotated[int, msgspec.Meta(ge=0, le=1024)] = 0


@dataclass(slots=True)
class _Speech:
    """How far a job has come.

    Args:
        pieces: Made and not yet given.
        sample: End of what was made.
    """

    pieces: deque[tuple[Payload, ...]] = field(default_factory=deque)
    sample: int = 0


class VitsRunner:
    """Speaks. One job a step: the first sound of one must not wait for the clauses of others."""

    max_batch = 1

    def __init__(self, settings: VitsSettings) -> None:
        self._settings = settings
        if settings.threads:
            torch.set_num_threads(settings.threads)
        folder = Path(settings.folder)
        if not (folder / "config.json").exists():
            raise ConfigError(f"{folder / 'config.json'} does not exist; folder must hold a VITS")
        try:
            self._tokenizer: Any = VitsTokenizer.from_pretrained(folder, local_files_only=True)
            model: Any = VitsModel.from_pretrained(folder, local_files_only=True)
            self._model: Any = model.to(settings.device).eval()
        # What the library says of files that are missing or broken, and of devices.
        except (OSError, ValueError, TypeError, RuntimeError, KeyError) as exc:
            raise ConfigError(f"the VITS in {folder} cannot be loaded: {exc}") from exc
        self._rate_hz = int(self._model.config.sampling_rate)
        self._speakers = int(self._model.config.num_speakers)

    def warm_up(self) -> None:
        """Say something.

        Raises:
            ConfigError: The tokenizer needs a package that is missing, as for phonemes.
        """
        try:
            self._waveform(_WARM_UP)
        except ImportError as exc:
            raise ConfigError(f"the tokenizer of this VITS needs another package: {exc}") from exc

    def open(self, job: Job) -> None:
        """Begin in silence."""
        job.state = _Speech()

    def ready(self, job: Job) -> bool:
        """A clause waits, or is not all given."""
        return bool(cast(_Speech, job.state).pieces or job.inputs)

    def step(self, jobs: Sequence[Job]) -> Sequence[Step]:
        """Give the next piece of each job."""
        return [self._step_one(job) for job in jobs]

    def close(self, job: Job) -> None:
        """Forget what was not given."""
        job.state = None

    def _step_one(self, job: Job) -> Step:
        speech = cast(_Speech, job.state)
        if not speech.pieces:
            clause = job.inputs.popleft()
            if not isinstance(clause, SpeakText):
                kind = type(clause).__name__
                return Step(error=EngineError(f"a synthesiser reads SpeakText, not {kind}"))
            try:
                self._say(clause, speech)
            except EngineError as exc:
                return Step(error=exc)
        return Step(speech.pieces.popleft())

    def _say(self, clause: SpeakText, speech: _Speech) -> None:
        pcm = self._waveform(clause)
        size = ms_to_samples(self._settings.chunk_ms, self._rate_hz) * SAMPLE_BYTES
        for at in range(0, len(pcm), size):
            piece = pcm[at : at + size]
            speech.pieces.append((AudioChunk(piece, self._rate_hz, speech.sample),))
            speech.sample += len(piece) // SAMPLE_BYTES
        mark = SpeechMark(clause.text_end, speech.sample)
        last = speech.pieces.pop() if speech.pieces else ()
        speech.pieces.append((*last, mark))

    def _waveform(self, clause: SpeakText) -> bytes:
        """Return all of a clause; nothing where no letter of it is known."""
        speaker = self._speaker(clause.voice)
        given = self._tokenizer(clause.text, return_tensors="pt")["input_ids"]
        # Between the letters stand blanks, one more than there are letters.
        if given.shape[1] < 2:
            return b""
        torch.manual_seed(self._seed(clause.text))
        with torch.inference_mode():
            made = self._model(
                given.to(self._settings.device),
                speaker_id=speaker,
                speaking_rate=clause.speed * self._model.speaking_rate,
            )
        return float_to_pcm(made.waveform[0].float().cpu().numpy())

    def _speaker(self, voice: str | None) -> int | None:
        if self._speakers <= 1:
            return None
        name = self._settings.voice if voice in (None, "", "default") else str(voice)
        if not name.isdecimal() or int(name) >= self._speakers:
            raise EngineError(
                f"there is no voice {name!r} in this VITS: they are 0 to {self._speakers - 1}"
            )
        return int(name)

    def _seed(self, text: str) -> int:
        if not self._settings.seed:
            return secrets.randbits(_SEED_BITS)
        digest = hashlib.blake2b(f"{self._settings.seed} {text}".encode(), digest_size=8).digest()
        return int.from_bytes(digest) >> (64 - _SEED_BITS)


VITS = RunnerType.plain(VitsSettings, VitsRunner, sleep_levels=(2,))
