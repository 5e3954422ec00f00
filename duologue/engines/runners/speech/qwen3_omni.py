"""Qwen3-Omni's talker and code2wav: a text in, or words as a thinker finds them; speech out.

Of the thinker only the embeddings of text are read here, since of words nothing else reaches the
talker; what it has made of pictures and recordings comes along with a conversation. The rest of it
is a runner of its own (``qwen3_omni_thinker``).

Source:
    ``Qwen3OmniMoeForConditionalGeneration.generate`` of transformers; Xu et al., "Qwen3-Omni
    technical report" (2025), section 2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from torch import Tensor

from duologue.core.errors import EngineError
from duologue.engines.answer_payloads import BeginAnswer
from duologue.engines.models.checkpoint_folder import CheckpointFolder
from duologue.engines.models.code2wav.decoder import Code2Wav
from duologue.engines.models.code2wav.fronts import EmbeddedCodes
from duologue.engines.models.code_talker.talker import CodeTalker, Prompt
from duologue.engines.payloads import SpeakText
from duologue.engines.runners.speech.code2wav_codec import Code2WavCodec
from duologue.engines.runners.speech.loading import speech_runner
from duologue.engines.runners.speech.qwen3_omni_prompt import OmniPrompt, features_of
from duologue.engines.runners.speech.qwen3_omni_senses import Sensed
from duologue.engines.runners.speech.qwen_talker import (
    Projection,
    QwenSettings,
    QwenWords,
    make_talker,
    missing,
)
from duologue.engines.runners.speech.torch_settings import dtype_of, use_threads

_PADS = 4


class Qwen3OmniSettings(QwenSettings, frozen=True, kw_only=True):
    """Settings of ``qwen3_omni``.

    Args:
        asked: What the person is taken to have said, to which the text is the answer.
    """

    voice: str = "ethan"
    asked: str = "Read this aloud."
    other_top_p: float = 0.8


class _Language(QwenWords):
    """How the talker reads text and codes."""

    def __init__(self, folder: CheckpointFolder, settings: Qwen3OmniSettings) -> None:
        talker = folder.section("talker_config")
        words = "thinker.model.embed_tokens.weight"
        super().__init__(folder, settings, talker, talker["text_config"], words)
        self._settings = settings
        self._sensing = Projection(folder, "talker.hidden_projection")
        self._voices: Mapping[str, int] = talker["speaker_id"]

    def prompt(self, clause: SpeakText) -> Prompt:
        """Read a clause as the answer to what was asked; its words come in with the frames."""
        own, line = self.own, self.tokens("\n")
        asked = self.tokens(clause.instructions or self._settings.asked)
        user = [own["im_start"], own["user"], *line, *asked, own["im_end"], *line]
        first, *later = self.tokens(clause.text)
        read = OmniPrompt()
        read.words(user)
        begun = self._begun(read, first, clause.voice)
        return replace(begun, text=self.words(later, last=True))

    def answer(self, asked: BeginAnswer, first: int) -> Prompt:
        """Read an answer to what the person said in a conversation."""
        read, at = OmniPrompt(), 0
        for span in asked.sensed:
            end = span.start + span.count
            features = self._sensing(features_of(span, self.first.device))
            grid = (span.grid[0], span.grid[1]) if span.grid else None
            read.words(asked.asked[at : span.start])
            read.sensed(Sensed(features, grid=grid), asked.asked[span.start])
            at = end
        read.words(asked.asked[at:])
        return self._begun(read, first, asked.voice)

    def words(self, ids: Sequence[int], *, last: bool) -> Tensor:
        """Read the words that come in with the frames."""
        return self.text([*ids, *([self.own["tts_eos"]] if last else ())])

    def _begun(self, read: OmniPrompt, first: int, voice: str | None) -> Prompt:
        own, line = self.own, self.tokens("\n")
        answer = [own["im_start"], own["assistant"], *line, *[own["tts_pad"]] * _PADS]
        read.words([*answer, own["tts_bos"], first])
        inputs = read.inputs(self.text(read.ids))
        codes = self.codes(self._beginning(voice))
        inputs[-len(codes) :] += codes
        pad = self.text([own["tts_pad"]])[0]
        return Prompt(inputs, None, pad, read.stands(inputs.device), read.shift)

    def _beginning(self, asked: str | None) -> list[int]:
        """Return the codes under the last inputs of the prompt, which name the voice."""
        voice = self._settings.voice if asked in (None, "", "default") else asked
        number = self._voices.get(str(voice).lower())
        if number is None:
            known = ", ".join(sorted(self._voices))
            raise EngineError(f"there is no voice {voice!r} in this checkpoint; there are {known}")
        codec = self.codec
        begin = [codec["nothink"], codec["think_bos"], codec["think_eos"]]
        return [*begin, number, codec["pad"], codec["bos"]]


def load_talker(settings: Qwen3OmniSettings) -> CodeTalker:
    """Load talker and code predictor."""
    use_threads(settings)
    with CheckpointFolder(Path(settings.folder), settings.device, dtype_of(settings)) as folder:
        network = folder.section("talker_config", "text_config")
        short = folder.section("talker_config", "code_predictor_config")
        try:
            language = _Language(folder, settings)
        except KeyError as exc:
            raise missing(exc) from exc
        return make_talker(folder, settings, language, language, network, short, language)


def load_codec(settings: Qwen3OmniSettings) -> Code2WavCodec:
    """Load code2wav."""
    use_threads(settings)
    longest = max(settings.first_frames, settings.chunk_frames) + 1
    with CheckpointFolder(Path(settings.folder), settings.device) as folder:
        section = folder.section("code2wav_config")
        front = EmbeddedCodes(folder, "code2wav", section, slots=settings.slots, longest=longest)
        decoder = Code2Wav(folder, "code2wav", section, front, slots=settings.slots)
    return Code2WavCodec(decoder, settings.slots)


QWEN3_OMNI = speech_runner(Qwen3OmniSettings, load_talker, load_codec)
