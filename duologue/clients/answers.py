"""The answers of a call as they arrive: which response speaks in which item, and in what format.

This module must not know playback or what an interruption does.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from duologue.clients.alignment import Alignment
from duologue.clients.timing import first_audible
from duologue.codecs.decoder import InputDecoder, input_decoder
from duologue.core.audio import SAMPLE_BYTES
from duologue.protocol.audio_formats import AudioFormat

_REMEMBERED = 64


@dataclass(slots=True)
class Answer:
    """One spoken item of a response.

    Args:
        first_audible: Sample of its first audible sound, once that has come.
        audible: That sample was played.
    """

    item_id: str
    response_id: str
    alignment: Alignment
    first_audible: int | None = None
    audible: bool = False

    def add_audio(self, pcm: bytes) -> None:
        """Note speech that has come."""
        if self.first_audible is None:
            offset = first_audible(pcm)
            if offset is not None:
                self.first_audible = self.alignment.samples + offset
        self.alignment.add_audio(len(pcm) // SAMPLE_BYTES)


@dataclass(slots=True)
class ResponseState:
    """One response that has not ended.

    Args:
        decoder: From its output format to the rate of the playback.
        silenced: It was interrupted: what still arrives of it is not played.
    """

    id: str
    decoder: InputDecoder
    silenced: bool = False
    items: list[str] = field(default_factory=list)


class Answers:
    """Responses and their items; of both, only the latest are remembered."""

    def __init__(self, rate_hz: int) -> None:
        self._rate_hz = rate_hz
        self._responses: OrderedDict[str, ResponseState] = OrderedDict()
        self._items: OrderedDict[str, Answer] = OrderedDict()

    @property
    def active(self) -> ResponseState | None:
        """The oldest response that has not ended."""
        return next(iter(self._responses.values()), None)

    def begin(self, response_id: str, audio_format: AudioFormat) -> None:
        """Note a response."""
        decoder = input_decoder(audio_format, self._rate_hz)
        self._responses[response_id] = ResponseState(response_id, decoder)
        if len(self._responses) > _REMEMBERED:
            self._responses.popitem(last=False)

    def response(self, response_id: str) -> ResponseState | None:
        """Return a response that has not ended."""
        return self._responses.get(response_id)

    def end(self, response_id: str) -> ResponseState | None:
        """Forget a response, and return what was known of it."""
        return self._responses.pop(response_id, None)

    def end_others(self, response_id: str | None) -> list[str]:
        """Forget all responses but one; returns their items."""
        others = [each for each in self._responses.values() if each.id != response_id]
        for each in others:
            del self._responses[each.id]
        return [item_id for each in others for item_id in each.items]

    def open_items(self) -> list[str]:
        """Return the items of the responses that have not ended."""
        return [item_id for response in self._responses.values() for item_id in response.items]

    def item(self, item_id: str, response_id: str) -> Answer:
        """Return an item of a response, a new one at its first mention."""
        answer = self._items.get(item_id)
        if answer is None:
            answer = Answer(item_id, response_id, Alignment(self._rate_hz))
            self._items[item_id] = answer
            response = self._responses.get(response_id)
            if response is not None:
                response.items.append(item_id)
            if len(self._items) > _REMEMBERED:
                self._items.popitem(last=False)
        return answer

    def known(self, item_id: str) -> Answer | None:
        """Return an item that was mentioned."""
        return self._items.get(item_id)

    def silence(self) -> None:
        """Play nothing more of the responses that have not ended."""
        for response in self._responses.values():
            response.silenced = True
