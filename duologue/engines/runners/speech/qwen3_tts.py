"""Qwen3-TTS with its 12 Hz codec: text in, speech out, with the voices of the checkpoint.

Read from the checkpoint's own files, so the package ``qwen-tts``, which asks for an old
transformers, is not needed; it is what the tests compare with.

Source:
    ``Qwen3TTSForConditionalGeneration.generate`` of ``qwen-tts`` 0.1.1, for checkpoints of the kind
    CustomVoice.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from duologue.core.errors import ConfigError, EngineError
from duologue.engines.models.checkpoint_folder import CheckpointFolder
from duologue.engines.models.code2wav.decoder import Code2Wav
from duologue.engines.models.code2wav.fronts import QuantizedCodes
from duologue.engines.models.code_talker.talker import CodeTalker, Prompt
from duologue.engines.payloads import SpeakText
from duologue.engines.runners.speech.code2wav_codec import Code2WavCodec
from duologue.engines.runners.speech.loading import speech_runner
from duologue.engines.runners.speech.qwen_talker import (
    QwenSettings,
    QwenWords,
    make_talker,
    missing,
)
from duologue.engines.runners.speech.torch_settings import dtype_of, use_threads

_KIND, _CODEC = "custom_voice", "qwen3_tts_tokenizer_12hz"
_LEAST_FRAMES = 2
_AUTO = "auto"


class Qwen3TtsSettings(QwenSettings, frozen=True, kw_only=True):
    """Settings of ``qwen3_tts``.

    Args:
        language: As the checkpoint names it; ``auto``: the talker finds out.
    """

    language: str = _AUTO
    other_temperature: float = 0.9


class _Language(QwenWords):
    """How the talker reads text and codes."""

    def __init__(self, folder: CheckpointFolder, settings: Qwen3TtsSettings) -> None:
        talker = folder.section("talker_config")
        words = "talker.model.text_embedding.weight"
        super().__init__(folder, settings, talker, talker, words, _LEAST_FRAMES)
        kind = folder.config.get("tts_model_type")
        if kind != _KIND:
            raise ConfigError(f"the Qwen3-TTS in {folder.path} is of the kind {kind}, not {_KIND}")
        self._settings = settings
        self._voices: Mapping[str, int] = talker["spk_id"]
        self._dialects: Mapping[str, str | bool] = talker["spk_is_dialect"]
        self._languages: Mapping[str, int] = talker["codec_language_id"]
        if settings.language.lower() not in (_AUTO, *self._languages):
            known = ", ".join(sorted(self._languages))
            raise ConfigError(f"language is {settings.language}; it may be {_AUTO}, {known}")

    def prompt(self, clause: SpeakText) -> Prompt:
        """Read a clause: all its words lie before the first frame."""
        own, codec, line = self.own, self.codec, self.tokens("\n")
        asked: list[int] = []
        if clause.instructions:
            told = self.tokens(f"user\n{clause.instructions}")
            asked = [own["im_start"], *told, own["im_end"], *line]
        role = [*asked, own["im_start"], *self.tokens("assistant"), *line]
        words = [*self.tokens(clause.text), own["tts_eos"]]
        beginning = self._beginning(clause)
        pads = [own["tts_pad"]] * (len(beginning) - 1)
        inputs = self.text([*role, *pads, own["tts_bos"], *words, own["tts_pad"]])
        codes = [*beginning, *[codec["pad"]] * len(words), codec["bos"]]
        inputs[-len(codes) :] += self.codes(codes)
        return Prompt(inputs, pad=self.text([own["tts_pad"]])[0])

    def _beginning(self, clause: SpeakText) -> list[int]:
        """Return the codes that name language and voice."""
        voice = self._settings.voice if clause.voice in (None, "", "default") else clause.voice
        name = str(voice or next(iter(self._voices))).lower()
        if name not in self._voices:
            known = ", ".join(sorted(self._voices))
            raise EngineError(f"there is no voice {voice!r} in this checkpoint; there are {known}")
        codec, language = self.codec, self._settings.language.lower()
        number = self._languages.get(language)
        dialect = self._dialects.get(name)
        if language in (_AUTO, "chinese") and isinstance(dialect, str):
            number = self._languages[dialect]
        if number is None:
            spoken = [codec["nothink"], codec["think_bos"], codec["think_eos"]]
        else:
            spoken = [codec["think"], codec["think_bos"], number, codec["think_eos"]]
        return [*spoken, self._voices[name], codec["pad"]]


def load_talker(settings: Qwen3TtsSettings) -> CodeTalker:
    """Load talker and code predictor."""
    use_threads(settings)
    with CheckpointFolder(Path(settings.folder), settings.device, dtype_of(settings)) as folder:
        network = folder.section("talker_config")
        short = folder.section("talker_config", "code_predictor_config")
        try:
            language = _Language(folder, settings)
        except KeyError as exc:
            raise missing(exc) from exc
        return make_talker(folder, settings, language, language, network, short)


def load_codec(settings: Qwen3TtsSettings) -> Code2WavCodec:
    """Load the decoder of the codec, which has a folder of its own in the checkpoint's."""
    use_threads(settings)
    longest = max(settings.first_frames, settings.chunk_frames) + 1
    slots = settings.slots
    place = Path(settings.folder) / "speech_tokenizer"
    with CheckpointFolder(place, settings.device) as folder:
        kind = folder.config.get("model_type")
        if kind != _CODEC:
            raise ConfigError(f"the codec in {place} is {kind}; only {_CODEC} is known")
        section = folder.section("decoder_config")
        front = QuantizedCodes(folder, "decoder", section, slots=slots, longest=longest)
        decoder = Code2Wav(folder, "decoder", section, front, slots=slots, late=False)
    return Code2WavCodec(decoder, slots)


QWEN3_TTS = speech_runner(Qwen3TtsSettings, load_talker, load_codec)
