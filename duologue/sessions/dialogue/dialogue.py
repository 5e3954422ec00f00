"""The dialogue: the plugin's side of the conversation, from a request for an answer to its end.

Joins the plugin with the responses it speaks in, and keeps the lanes of their engine work. This
module must not know why an answer is wanted or stopped, nor the commands of the wire.
"""

from __future__ import annotations

import math

from duologue.core.audio import samples_to_ms
from duologue.core.errors import LimitExceeded, PluginError, ProtocolError
from duologue.core.ids import IdMaker
from duologue.duplex_plugins.contract import (
    AdoptRequest,
    BeginResponse,
    CallFunction,
    ConversationChanged,
    EndResponse,
    Interrupted,
    ItemView,
    Listen,
    PluginInput,
    ResponseOutcome,
    ResponseRequested,
    SayAudio,
    SayText,
    StartRequest,
)
from duologue.duplex_plugins.stream_noted import StreamNoted
from duologue.engines.frame_counts import FrameCounts
from duologue.protocol.errors import ErrorCode
from duologue.protocol.events import ItemTruncated
from duologue.protocol.items import Item, ItemReference
from duologue.protocol.response_config import ResponseConfig
from duologue.protocol.response_resource import CLIENT_CANCELLED, TURN_DETECTED
from duologue.sessions.dialogue.plugin_config import plugin_config
from duologue.sessions.dialogue.plugin_host import PluginHost
from duologue.sessions.extensions import Extensions
from duologue.sessions.history.call_pairs import CallPairs
from duologue.sessions.history.entry import Entry
from duologue.sessions.history.history import History
from duologue.sessions.history.prompt_view import check_can_be_read, prompt_view
from duologue.sessions.requests import Asker, Requests
from duologue.sessions.speaking.output_buffer import OutputOverflow
from duologue.sessions.speaking.response import Response, ResponseState
from duologue.sessions.speaking.speaking import Speaking

_DRAINING = ResponseState.DRAINING
"""Compared with for every frame, and members of an enumeration are slow to look up."""

_SAID = (SayAudio, SayText, CallFunction, EndResponse)
"""Effects on a response, the most frequent one first."""


class Dialogue:
    """The assistant of one session."""

    __slots__ = (
        "_answer_pending",
        "_extensions",
        "_held_until",
        "_history",
        "_host",
        "_max_out_of_band",
        "_new_id",
        "_requests",
        "_speaking",
        "_told",
        "answered_at",
        "muted",
        "own_config",
        "stream",
    )

    def __init__(
        self,
        host: PluginHost,
        speaking: Speaking,
        history: History,
        requests: Requests,
        new_id: IdMaker,
        own_config: ResponseConfig,
        max_out_of_band: int,
        extensions: Extensions | None = None,
        *,
        muted: bool = False,
        held_until: float = -math.inf,
    ) -> None:
        self.own_config = own_config
        """What a response has that no client asked for."""

        self.muted = muted
        """Nobody wants answers: the plugin is told nothing."""

        self._held_until = held_until
        """Before that, no answer begins that only a detector has asked for."""

        self.answered_at: float | None = None
        """When the last answer of the conversation had ended; ``None``: something came after it."""

        self._extensions = extensions
        self._answer_pending = False
        self.stream: FrameCounts | None = None
        """What became of the frames of a model that is stepped at a beat, as it last said."""
        self._told = 0
        self._host = host
        self._speaking = speaking
        self._history = history
        self._requests = requests
        self._new_id = new_id
        self._max_out_of_band = max_out_of_band

    def tell(self, item: PluginInput, now: float) -> None:
        """Give the plugin one input and act on what it says."""
        if self.muted:
            return
        requested: ResponseRequested | None = None
        overflowed: tuple[Response, ...] = ()
        host, speaking = self._host, self._speaking
        for effect in host.plugin.step(host.state, item):
            if isinstance(effect, _SAID):
                response = speaking.get(effect.response_id)
                if response is None or response.state is _DRAINING:
                    raise PluginError(f"the plugin speaks in '{effect.response_id}', which is over")
                if overflowed and response in overflowed:
                    continue
                try:
                    if isinstance(effect, SayAudio):  # nearly always
                        speaking.say_audio(response, effect.pcm, effect.marks, now)
                    else:
                        self._act(response, effect, now)
                except OutputOverflow:
                    # It ends after the step, whose other effects are as valid as ever.
                    overflowed = (*overflowed, response)
            elif isinstance(effect, BeginResponse):
                if self._speaking.active is None:
                    requested = self._begin(self.own_config, self._history.view(), now)
            elif isinstance(effect, Listen):
                if self._extensions is not None:
                    self._extensions.listens("model_decision")
            elif isinstance(effect, StreamNoted):
                self._noted(effect)
            else:
                self._host.perform(effect)
                if isinstance(effect, StartRequest | AdoptRequest):
                    self._credit(effect.response_id)
        if overflowed:
            for response in overflowed:
                self.stop(response, "failed", ErrorCode.OUTPUT_OVERFLOW, now)
        if requested is not None:
            # Within the same call, so that the next input which the plugin sees is the grant: that
            # for lockstep models keeps the frame it wants to say first in its state until then.
            self.tell(requested, now)

    def _noted(self, noted: StreamNoted) -> None:
        self.stream = noted.counts
        if noted.remembers_ms is not None and self._extensions is not None:
            self._extensions.remembers(noted.remembers_ms)

    def tell_conversation(self, now: float) -> None:
        """Let a plugin that prompts from text know the conversation, if it has changed."""
        if self._history.changes == self._told:
            return
        self._told = self._history.changes
        if self._host.capabilities.reads_transcripts:
            self.tell(ConversationChanged(self._history.view()), now)

    def request(self, config: ResponseConfig, now: float) -> None:
        """Begin a response.

        Raises:
            ProtocolError: The conversation has an active response and this one may not interrupt
                it, or an input is unknown or cannot be understood.
            LimitExceeded: Too many out-of-band responses run.
        """
        if self.muted:
            raise ProtocolError(
                "a transcription session makes no responses; for answers, connect without "
                "intent=transcription",
                code=ErrorCode.UNSUPPORTED,
            )
        view = self._view(config)
        out_of_band = config.conversation == "none"
        active = self._speaking.active
        if out_of_band:
            running = sum(1 for response in self._speaking.all() if response.out_of_band)
            if running >= self._max_out_of_band:
                raise LimitExceeded(
                    f"{running} out-of-band responses run, the limit is {self._max_out_of_band}",
                    param="response.conversation",
                )
        elif active is not None and not config.interrupt:
            raise ProtocolError(
                f"Conversation already has an active response: {active.id}. "
                "Wait for response.done, or cancel it first.",
                code=ErrorCode.RESPONSE_ACTIVE,
            )
        if config.interrupt and (active is not None or self._speaking.playback.lead_s(now) > 0):
            self.interrupt(now, CLIENT_CANCELLED)
            # What was not heard is no part of the conversation that is answered now.
            view = self._view(config)
        lost = self._history.last_turn_lost() if config.input is None else ""
        if lost and self._host.capabilities.reads_transcripts:
            # To the plugin it would look as if the person had said nothing: it is not told at all.
            self._speaking.cut_off(self._open(config, view, now), "failed", lost, now)
        else:
            self.tell(self._begin(config, view, now), now)

    def answer_when_free(self) -> None:
        """The person has finished: answer, now or when the current answer is over."""
        self._answer_pending = not (self.muted or self._host.capabilities.decides_turns)

    @property
    def owes_answer(self) -> bool:
        """The person has finished, and is still to be answered."""
        return self._answer_pending

    def release(self, *, wanted: bool) -> None:
        """Hold no answer back any more: begin what was held back, or forget it."""
        if self._held_until > -math.inf:
            self._answer_pending = self._answer_pending and wanted
            self._held_until = -math.inf

    def begin_no_more(self) -> None:
        """Begin no answer from now on that no client has asked for."""
        self._held_until = math.inf

    def moved_on(self) -> None:
        """Something came after the last answer: nobody is waited for any more."""
        self.answered_at = None

    def count_anew(self, now: float) -> None:
        """Let the silence after the last answer begin now."""
        if self.answered_at is not None:
            self.answered_at = now

    def due_at(self) -> float | None:
        """When an answer that is held back is due; ``None`` where none is."""
        held = self._answer_pending and self._held_until > -math.inf
        return self._held_until if held else None

    def mute(self, now: float) -> None:
        """Answer nobody from now on: the session is for transcription alone."""
        for response in self._speaking.all():
            self.stop(response, "cancelled", CLIENT_CANCELLED, now)
        self._requests.cancel_of(Asker.PLUGIN)
        self._answer_pending = False
        self.muted = True

    def interrupt(self, now: float, reason: str = TURN_DETECTED) -> None:
        """The person has the floor: stop the answer, and what is still being played of others."""
        active = self._speaking.active
        if active is not None:
            self.stop(active, "cancelled", reason, now, truncates=True)
        for item_id, heard in self._speaking.stop_playback(now):
            if item_id in self._history:
                entry = self._history.get(item_id)
                self._cut(entry, heard)
                self.heard_changed(entry, now)

    def cancel(self, response_id: str | None, now: float) -> None:
        """Stop an answer: the named one, or else the conversation's active one.

        Raises:
            ProtocolError: There is none.
        """
        speaking = self._speaking
        response = speaking.active if response_id is None else speaking.get(response_id)
        if response is None:
            raise ProtocolError(
                "Cancellation failed: no active response found",
                code=ErrorCode.CANCEL_NOT_ACTIVE,
                param=None if response_id is None else "response_id",
            )
        self.stop(response, "cancelled", CLIENT_CANCELLED, now)

    def heard_changed(self, entry: Entry, now: float) -> None:
        """Tell the plugin that of an answer which is over, another part was heard."""
        spoken = entry.spoken
        if spoken is not None and self._speaking.get(spoken.response_id) is None:
            heard = self._history.heard_of(spoken.response_id)
            cut = None
            if (heard_samples := self._speaking.playback.client_cut(entry.item.id)) is not None:
                cut = self._history.samples_before(entry) + heard_samples
            self.tell(Interrupted(spoken.response_id, heard, cut), now)

    def stop(
        self, response: Response, status: str, reason: str, now: float, *, truncates: bool = False
    ) -> None:
        """End a response before it is all said, cancel its work, and tell the plugin.

        Args:
            truncates: The client is told how much was heard, in so far as we know.
        """
        cut = self._speaking.cut_off(response, status, reason, now)
        if response.out_of_band:
            self._requests.close_lane(response.lane)  # the conversation's epoch goes on
        else:
            self._requests.interrupt_lane(response.lane)
        for message, heard in cut:
            if message.id in self._history:
                entry = self._history.get(message.id)
                entry.interrupted = True
                if truncates:
                    self._cut(entry, heard)
        self.tell(Interrupted(response.id, response.heard_text()), now)

    def fail_waiting(self, item_id: str, code: str, now: float) -> None:
        """Fail the responses that wait for the words of an item: they will not come."""
        for response in self._speaking.all():
            if response.state is ResponseState.CREATED and item_id in response.awaits:
                self.stop(response, "failed", code, now)

    def follow_up(self, now: float) -> None:
        """Grant credit for what was sent, close lanes of what has ended, begin what is due."""
        if self._speaking.has_news:
            self._follow_up_responses(now)
        if self._history.changes != self._told:
            self.tell_conversation(now)
        if self._answer_pending and now >= self._held_until:
            self._held_until = -math.inf
            if self._speaking.active is None:
                self._answer_pending = False
                self.request(self.own_config, now)

    def _follow_up_responses(self, now: float) -> None:
        sent, ended = self._speaking.take_news()
        for response_id, samples in sent.items():
            response = self._speaking.get(response_id)
            if response is not None:
                self._grant(response, samples)
        for response in ended:
            self._requests.close_lane(response.lane)
            self._history.touch()
            if not response.out_of_band:
                self.answered_at = now

    def _grant(self, response: Response, samples: int) -> None:
        """Let what speaks in a response make as much again as was sent of it."""
        # Counted from the start: with each piece rounded by itself, a long speech would run dry.
        rate_hz, before = self._speaking.rate_hz, response.sent_samples
        response.sent_samples = sent = before + samples
        granted_ms = samples_to_ms(sent, rate_hz) - samples_to_ms(before, rate_hz)
        # Whose sound it was is not known any more. One request speaks in a response, with all
        # plugins that there are; of two, each would be granted all of it: more than its share may
        # then wait, as far as the output buffer has room, but neither runs dry.
        for request in self._requests.of_lane(response.lane):
            if request.speaks and granted_ms:
                self._requests.grant(request, granted_ms)

    def _credit(self, response_id: str | None) -> None:
        """A request works for a response: from now on what is sent of it counts."""
        response = None if response_id is None else self._speaking.get(response_id)
        if response is not None:
            response.credited = True

    def _begin(
        self, config: ResponseConfig, view: tuple[ItemView, ...], now: float
    ) -> ResponseRequested:
        response = self._open(config, view, now)
        wanted = plugin_config(config, self._host.capabilities)
        response.tools = wanted.tools
        return ResponseRequested(response.id, view, wanted, response.out_of_band)

    def _open(self, config: ResponseConfig, view: tuple[ItemView, ...], now: float) -> Response:
        response = self._speaking.begin(self._new_id("resp"), config, now)
        response.awaits = frozenset(
            item.id for item in view if item.text is None and item.role == "user"
        )
        self._requests.open_lane(response.lane)
        return response

    def _act(
        self,
        response: Response,
        said: SayText | CallFunction | EndResponse,
        now: float,
    ) -> None:
        match said:
            case SayText(text=text):
                self._speaking.say_text(response, text, now)
            case CallFunction():
                self._call(response, said, now)
            case EndResponse(outcome=outcome, reason=reason, usage=usage):
                self._requests.cancel_lane(response.lane)
                must_call = response.tools.choice == "required" and not response.calls
                if outcome is ResponseOutcome.COMPLETED and must_call:
                    outcome, reason = ResponseOutcome.FAILED, ErrorCode.TOOL_CALL_MISSING
                self._speaking.generated(response, outcome.value, reason, usage)

    def _call(self, response: Response, call: CallFunction, now: float) -> None:
        if not response.tools.allows(call.name):
            raise PluginError(f"the plugin calls function '{call.name}', which it may not call")
        self._speaking.call(response, call.call, call.name, call.arguments, call.done, now)

    def _cut(self, entry: Entry, heard_samples: int) -> None:
        """Note what was heard of an item; the client may know better and say so."""
        entry.interrupted = True
        if entry.spoken is None or heard_samples >= entry.spoken.samples:
            return
        entry.spoken.cut_at(heard_samples)
        self._history.touch()
        self._speaking.emit(
            ItemTruncated(
                item_id=entry.item.id,
                content_index=0,
                audio_end_ms=samples_to_ms(heard_samples, self._speaking.rate_hz),
            )
        )

    def _view(self, config: ResponseConfig) -> tuple[ItemView, ...]:
        if config.input is None:
            return self._history.view()
        entries: list[Entry] = []
        pairs = CallPairs()
        for index, item in enumerate(config.input):
            param = f"response.input[{index}]"
            entry = self._input(item, param)
            pairs.check(entry.item, param)
            pairs.add(entry.item)
            entries.append(entry)
        return prompt_view(entries)

    def _input(self, item: Item | ItemReference, param: str) -> Entry:
        if isinstance(item, ItemReference):
            return self._history.get(
                item.id, code=ErrorCode.ITEM_UNKNOWN_REFERENCE, param=f"{param}.id"
            )
        check_can_be_read(item, param, sees=self._host.capabilities.sees)
        return Entry(item)
