"""One answer: text from the language model goes in, transcript and clauses for the voice come out.

Speech and transcript stay together: a clause's text is said just before its audio, and every mark
lies on a transcript offset. Pure; must not know turns, speculation or the conversation.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from duologue.duplex_plugins.cascaded.settings import CascadedSettings
from duologue.duplex_plugins.contract import (
    AppendToRequest,
    EndResponse,
    FinishRequest,
    PluginConfig,
    PluginEffect,
    ResponseOutcome,
    SayAudio,
    SayText,
    StartRequest,
)
from duologue.duplex_plugins.function_calls import FunctionCalls
from duologue.duplex_plugins.spoken.clauses import Clause, ClauseCutter, ClauseLimits
from duologue.duplex_plugins.spoken.normaliser import speakable
from duologue.engines.payloads import AudioChunk, SpeakText, SpeechMark, TokenUsage, ToolCallDelta

BROKE_OFF = "stage_failed"
"""The voice ended before it had said everything."""


class Answer:
    """From the first token to ``EndResponse``, which comes from exactly one of the methods.

    Args:
        voice_key: Key of the synthesiser's request, which is started at the first clause.
        max_tokens: What the language model was allowed; reaching it makes the answer incomplete.
    """

    def __init__(
        self,
        response_id: str,
        voice_key: str,
        config: PluginConfig,
        settings: CascadedSettings,
        max_tokens: int,
    ) -> None:
        self.response_id = response_id
        self.voice_key = voice_key
        self.voice_runs = False
        self.text = ""
        """All that was said so far."""
        self._config = config
        self._settings = settings
        self._max_tokens = max_tokens
        self._cutter = ClauseCutter(_limits(settings))
        self._blank = ""
        self._unsaid: deque[Clause] = deque()
        self._spoken_until = 0
        self._calls = FunctionCalls()
        self._usage: TokenUsage | None = None
        self._all_written = False

    def on_text(self, text: str) -> Iterator[PluginEffect]:
        """The model wrote more."""
        if self._config.audio_out:
            yield from self._speak(self._cutter.feed(text))
            return
        # White space at the ends of an answer is no part of it.
        text = self._blank + text if self.text else text.lstrip()
        kept = text.rstrip()
        self._blank = text[len(kept) :]
        if kept:
            yield self._say(kept)

    def on_call(self, piece: ToolCallDelta) -> None:
        """The model wrote more of a function call, which is made when everything is said."""
        self._calls.add(piece)

    def on_usage(self, usage: TokenUsage) -> None:
        """What the model read and wrote."""
        self._usage = usage

    def on_written(self) -> Iterator[PluginEffect]:
        """The model has written everything."""
        self._all_written = True
        yield from self._speak(self._cutter.finish())
        if self.voice_runs:
            yield FinishRequest(self.voice_key)
        else:
            yield from self._end()

    def on_audio(self, chunk: AudioChunk) -> Iterator[PluginEffect]:
        """The voice said more."""
        yield from self._catch_up(self._spoken_until + 1)
        yield SayAudio(self.response_id, chunk.pcm)

    def on_mark(self, mark: SpeechMark) -> Iterator[PluginEffect]:
        """The voice has come to a place in the transcript."""
        yield from self._catch_up(mark.text_end)
        self._spoken_until = max(self._spoken_until, mark.text_end)
        yield SayAudio(self.response_id, b"", (mark,))

    def on_voice_ended(self) -> Iterator[PluginEffect]:
        """The voice's request has ended; the response is over, well or not."""
        self.voice_runs = False
        if self._all_written and self._spoken_until == self._cutter.length:
            yield from self._end()
        else:
            yield EndResponse(self.response_id, ResponseOutcome.FAILED, BROKE_OFF)

    def _speak(self, clauses: Iterable[Clause]) -> Iterator[PluginEffect]:
        for clause in clauses:
            start = clause.end - len(clause.text)
            spoken = speakable(clause.text)
            payload = SpeakText(
                spoken.text,
                clause.end,
                self._config.voice,
                self._config.speed,
                tuple((end, start + written) for end, written in spoken.word_ends),
            )
            if self.voice_runs:
                self._unsaid.append(clause)
                yield AppendToRequest(self.voice_key, payload)
                continue
            self.voice_runs = True
            yield self._say(clause.text)
            yield StartRequest(
                key=self.voice_key,
                pipeline=self._settings.tts_pipeline,
                first=payload,
                response_id=self.response_id,
                more_input=True,
                credit=self._settings.speech_credit_ms,
            )

    def _catch_up(self, text_end: int) -> Iterator[PluginEffect]:
        """Say the clauses that begin before ``text_end``."""
        while self._unsaid and len(self.text) < text_end:
            yield self._say(self._unsaid.popleft().text)

    def _say(self, text: str) -> SayText:
        self.text += text
        return SayText(self.response_id, text)

    def _end(self) -> Iterator[PluginEffect]:
        yield from self._calls.end(
            self.response_id, self._config.tools, self._usage, self._max_tokens
        )


def _limits(settings: CascadedSettings) -> ClauseLimits:
    clauses = settings.clauses
    return ClauseLimits(
        first_pause=clauses.first_pause_words,
        first_break=clauses.first_break_words,
        first_most=clauses.first_most_words,
        most=clauses.most_words,
    )
