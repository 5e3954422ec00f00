"""The five models of the baseline chain, loaded from a folder, each behind one plain method.

Written for measuring: no code of Duologue is used, so the baseline cannot gain from its changes.
The folder holds what `duologue models pull` puts under models/ of the cache.
"""

import json
from collections.abc import Callable
from pathlib import Path

import ctranslate2
import numpy as np
import onnxruntime
import tokenizers
import xllamacpp
from hibari import Hibari
from log_mel import FRAMES_PER_S, MELS, SAMPLE_RATE_HZ, Floats, log_mel

WHISPER = "whisper-tiny.en-ct2"
QWEN = "qwen2.5-coder-0.5b-instruct-q4_k_m/qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"
SILERO = "silero-vad/silero_vad.onnx"
SMART_TURN = "smart-turn-v3.2/smart-turn-v3.2-cpu.onnx"

SYSTEM = "You are a helpful voice assistant. Answer briefly in plain spoken English."
EXAMPLES = (
    ("Hello there.", "Hello! How can I help you today?"),
    ("What is the capital of Japan?", "The capital of Japan is Tokyo."),
    (
        "Can you suggest a film?",
        "Sure, you could watch The Lion King. It is a classic family film.",
    ),
    (
        "How do I make tea?",
        "Boil some water, pour it over a tea bag, wait three minutes, and enjoy.",
    ),
)
MAX_TOKENS = 48


class VoiceActivity:
    """Silero VAD: the probability of speech in each 32 ms."""

    WINDOW_SAMPLES = 512
    CONTEXT_SAMPLES = 64

    def __init__(self, folder: Path) -> None:
        self._session = _onnx(folder / SILERO)
        self.reset()

    def reset(self) -> None:
        self._state = np.zeros((2, 1, 128), np.float32)
        self._context = np.zeros(self.CONTEXT_SAMPLES, np.float32)

    def probability(self, window: Floats) -> float:
        audio = np.concatenate([self._context, window])
        self._context = audio[-self.CONTEXT_SAMPLES :]
        speech, self._state = self._session.run(
            None,
            {
                "input": audio[None],
                "state": self._state,
                "sr": np.array(SAMPLE_RATE_HZ, np.int64),
            },
        )
        return float(speech[0, 0])


class EndOfTurn:
    """smart-turn v3.2: the probability that the person has finished, from the last 8 s."""

    WINDOW_SAMPLES = 8 * SAMPLE_RATE_HZ

    def __init__(self, folder: Path) -> None:
        self._session = _onnx(folder / SMART_TURN)

    def probability(self, audio: Floats) -> float:
        recent = audio[-self.WINDOW_SAMPLES :]
        recent = np.pad(recent, (self.WINDOW_SAMPLES - len(recent), 0))
        recent = (recent - recent.mean()) / np.sqrt(recent.var() + 1e-7)
        features = log_mel(recent.astype(np.float32))
        return float(self._session.run(None, {"input_features": features[None]})[0][0].item())


class Recogniser:
    """Whisper tiny.en int8 with a window of 15 s, greedy as the rough chain had it."""

    WINDOW_FRAMES = 15 * FRAMES_PER_S
    TAIL_SAMPLES = SAMPLE_RATE_HZ // 10

    def __init__(self, folder: Path) -> None:
        model = folder / WHISPER
        self._whisper = ctranslate2.models.Whisper(
            str(model), device="cpu", compute_type="int8", intra_threads=2, inter_threads=1
        )
        self._tokenizer = tokenizers.Tokenizer.from_file(str(model / "tokenizer.json"))
        self._prompt = [
            self._tokenizer.token_to_id(token)
            for token in ("<|startoftranscript|>", "<|notimestamps|>")
        ]
        self._first_special = self._tokenizer.token_to_id("<|endoftext|>")

    def text(self, audio: Floats, beam_size: int = 1) -> str:
        heard = log_mel(np.concatenate([audio, np.zeros(self.TAIL_SAMPLES, np.float32)]))
        heard = heard[:, : self.WINDOW_FRAMES]
        features = np.full((1, MELS, self.WINDOW_FRAMES), heard.min(), np.float32)
        features[0, :, : heard.shape[1]] = heard
        result = self._whisper.generate(
            ctranslate2.StorageView.from_array(features),
            [self._prompt],
            beam_size=beam_size,
            max_length=len(audio) * 8 // SAMPLE_RATE_HZ + 14,
        )[0]
        tokens = [token for token in result.sequences_ids[0] if token < self._first_special]
        return str(self._tokenizer.decode(tokens)).strip()


class ChatModel:
    """Qwen2.5-Coder-0.5B-Instruct on llama.cpp in this process, greedy, four examples."""

    def __init__(self, folder: Path) -> None:
        params = xllamacpp.CommonParams()
        params.model.path = str(folder / QWEN)
        params.n_ctx = 2048
        params.n_parallel = 1
        params.cpuparams.n_threads = 2
        params.cpuparams_batch.n_threads = 2
        params.verbosity = 0
        self._server = xllamacpp.Server(params)
        self._messages = [{"role": "system", "content": SYSTEM}]
        for question, answer in EXAMPLES:
            self._messages += [
                {"role": "user", "content": question},
                {"role": "assistant", "content": answer},
            ]

    def answer(self, question: str, on_text: Callable[[str], None]) -> None:
        """Generate the reply; `on_text` gets each piece as it is made."""

        def on_chunk(chunk: object) -> None:
            for delta in _deltas(chunk):
                on_text(delta)

        self._server.handle_chat_completions(
            {
                "messages": [*self._messages, {"role": "user", "content": question}],
                "max_tokens": MAX_TOKENS,
                "temperature": 0.0,
                "repeat_penalty": 1.1,
                "stream": True,
                "cache_prompt": True,
            },
            on_chunk,
        )


class Voice:
    """hibari, 24 kHz."""

    SAMPLE_RATE_HZ = 24_000

    def __init__(self) -> None:
        self._hibari = Hibari(threads=1)

    def speak(self, text: str) -> Floats:
        return np.asarray(self._hibari(text, seed=0), np.float32)


def _onnx(path: Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def _deltas(chunk: object) -> list[str]:
    """The text in what xllamacpp hands over: a dictionary, a list of them, or server-sent lines."""
    if isinstance(chunk, bytes):
        chunk = chunk.decode()
    if isinstance(chunk, str):
        lines = [line.removeprefix("data: ") for line in chunk.splitlines() if line[:6] == "data: "]
        return [text for line in lines if line != "[DONE]" for text in _deltas(json.loads(line))]
    if isinstance(chunk, list):
        return [text for part in chunk for text in _deltas(part)]
    assert isinstance(chunk, dict)
    contents = [(choice.get("delta") or {}).get("content") for choice in chunk.get("choices", [])]
    return [content for content in contents if content]
