"""The transcriber: when the recogniser is asked, and which of its answers is worth passing on.

A recogniser request lives as long as one turn. It is asked now and then while the person speaks
(partial), at each pause on speculation, and once more when the turn is committed, unless the
speculation already covers all that was said. This module must not know what a transcript is for.
"""

from __future__ import annotations

from dataclasses import dataclass

from duologue.core.audio import AudioFrame, ms_to_samples
from duologue.duplex_plugins.contract import TranscriptKind
from duologue.engines.payloads import AudioChunk, DecodeSpeech, Transcript
from duologue.sessions.requests import Asker, Requests


@dataclass(frozen=True, slots=True)
class TranscriptReady:
    """Text of a turn. ``stable`` is the part that will not change any more."""

    item_id: str
    text: str
    kind: TranscriptKind
    stable: str
    audio_samples: int


@dataclass(slots=True)
class _Utterance:
    item_id: str
    start_sample: int
    fed_until: int
    partial_due: int
    asked_final_at: int | None = None
    """Where the audio ended that the last final decode was asked for."""
    speculative: Transcript | None = None
    committed_at: int | None = None
    last_text: str = ""
    """Of the last answer before the turn was committed."""
    stable: str = ""


class Transcriber:
    """Feeds and questions one recogniser request per turn.

    Args:
        pipeline: Name of the recogniser's pipeline.
        partial_ms: Audio between two partial transcripts; ``None``: no partials.
    """

    def __init__(
        self, requests: Requests, pipeline: str, rate_hz: int, partial_ms: int | None
    ) -> None:
        self._requests = requests
        self._pipeline = pipeline
        self._rate_hz = rate_hz
        self._partial = None if partial_ms is None else ms_to_samples(partial_ms, rate_hz)
        self._open: dict[str, _Utterance] = {}

    def __contains__(self, item_id: str) -> bool:
        return item_id in self._open

    def begin(self, item_id: str, audio: AudioFrame) -> None:
        """A turn begins; ``audio`` is what is known of it already."""
        self._open[item_id] = utterance = _Utterance(
            item_id,
            audio.start_sample,
            audio.start_sample,
            audio.end_sample + (self._partial or 0),
        )
        self._requests.open(Asker.TRANSCRIBER, item_id, self._pipeline, more_input=True)
        self._feed(utterance, audio)

    def append(self, item_id: str, audio: AudioFrame, *, wanted: bool = True) -> None:
        """More of the turn; asks for a partial when one is due.

        Args:
            wanted: A partial would tell somebody something now; else it stays due.
        """
        utterance = self._open.get(item_id)
        if utterance is None:
            return
        self._feed(utterance, audio)
        if not wanted or self._partial is None or utterance.asked_final_at is not None:
            # A recogniser answers the newest request alone: a partial would displace the final.
            return
        if audio.end_sample >= utterance.partial_due:
            utterance.partial_due = audio.end_sample + self._partial
            self._ask(utterance, "partial", audio.end_sample)

    def add(self, item_id: str, audio: AudioFrame) -> None:
        """More of something that is known whole: nothing is asked before its end."""
        utterance = self._open.get(item_id)
        if utterance is not None:
            self._feed(utterance, audio)

    def pause(self, item_id: str, end_sample: int) -> None:
        """The turn may be over at ``end_sample``: decode it on speculation."""
        utterance = self._open.get(item_id)
        if utterance is not None:
            utterance.asked_final_at = end_sample
            # It will say all that a partial could.
            utterance.partial_due = end_sample + (self._partial or 0)
            self._ask(utterance, "final", end_sample)

    def resume(self, item_id: str) -> None:
        """It was not over."""
        utterance = self._open.get(item_id)
        if utterance is not None:
            utterance.asked_final_at = None
            utterance.speculative = None

    def commit(self, item_id: str, end_sample: int) -> TranscriptReady | None:
        """The turn is over; returns its transcript if the speculation was right."""
        utterance = self._open.get(item_id)
        if utterance is None:
            return None
        utterance.committed_at = end_sample
        if utterance.speculative is not None and utterance.asked_final_at == end_sample:
            return self._finish(utterance, utterance.speculative)
        if utterance.asked_final_at != end_sample:
            utterance.asked_final_at = end_sample
            self._ask(utterance, "final", end_sample)
        return None

    def drop(self, item_id: str) -> None:
        """The turn is none after all."""
        if self._open.pop(item_id, None) is not None:
            self._requests.cancel(Asker.TRANSCRIBER, item_id)

    def on_transcript(self, item_id: str, transcript: Transcript) -> TranscriptReady | None:
        """Take an answer of the recogniser; returns it if it is news."""
        utterance = self._open.get(item_id)
        if utterance is None:
            return None
        if transcript.kind == "partial":
            return self._on_partial(utterance, transcript)
        if transcript.end_sample != utterance.asked_final_at:
            return None
        if utterance.committed_at is not None:
            return self._finish(utterance, transcript)
        utterance.speculative = transcript
        self._agree(utterance, transcript.text)
        return self._ready(utterance, transcript.text, TranscriptKind.SPECULATIVE)

    def failed(self, item_id: str) -> bool:
        """The request ended early; tells whether a committed turn is left without text."""
        utterance = self._open.pop(item_id, None)
        return utterance is not None and utterance.committed_at is not None

    def _on_partial(self, utterance: _Utterance, transcript: Transcript) -> TranscriptReady | None:
        if utterance.committed_at is not None or not transcript.text:
            return None
        self._agree(utterance, transcript.text)
        return self._ready(utterance, transcript.text, TranscriptKind.PARTIAL)

    @staticmethod
    def _agree(utterance: _Utterance, text: str) -> None:
        """What two answers in a row agree on, word by word, has proved to stay."""
        agreed = _common_words(utterance.last_text, text)
        if agreed.startswith(utterance.stable):
            utterance.stable = agreed
        utterance.last_text = text

    def _finish(self, utterance: _Utterance, transcript: Transcript) -> TranscriptReady:
        del self._open[utterance.item_id]
        request = self._requests.find(Asker.TRANSCRIBER, utterance.item_id)
        if request is not None:
            self._requests.cancel(Asker.TRANSCRIBER, utterance.item_id)
        return self._ready(utterance, transcript.text, TranscriptKind.FINAL)

    def _ready(self, utterance: _Utterance, text: str, kind: TranscriptKind) -> TranscriptReady:
        end = utterance.committed_at or utterance.fed_until
        return TranscriptReady(
            utterance.item_id, text, kind, utterance.stable, end - utterance.start_sample
        )

    def _feed(self, utterance: _Utterance, audio: AudioFrame) -> None:
        request = self._requests.find(Asker.TRANSCRIBER, utterance.item_id)
        if request is not None and audio.pcm:
            self._requests.append(request, AudioChunk(audio.pcm, audio.rate_hz, audio.start_sample))
            utterance.fed_until = audio.end_sample

    def _ask(self, utterance: _Utterance, kind: str, end_sample: int) -> None:
        request = self._requests.find(Asker.TRANSCRIBER, utterance.item_id)
        if request is not None:
            self._requests.append(
                request, DecodeSpeech("partial" if kind == "partial" else "final", end_sample)
            )


def _common_words(first: str, second: str) -> str:
    common: list[str] = []
    for a, b in zip(first.split(), second.split(), strict=False):
        if a != b:
            break
        common.append(a)
    return " ".join(common)
