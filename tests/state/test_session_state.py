"""Is there an order of events that breaks a promise? Random people, clients and engines."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from duologue.engines.payloads import (
    AudioChunk,
    EndOfTurn,
    SpeechMark,
    TextDelta,
    ToolCallDelta,
)
from duologue.protocol.append_audio import AppendAudio
from duologue.protocol.commands import (
    CancelResponse,
    ClearAudio,
    CommitAudio,
    CreateItem,
    CreateResponse,
    DeleteItem,
    ResponseParams,
    RetrieveItem,
    TruncateItem,
    UpdateSession,
)
from duologue.protocol.events import ErrorEvent, ItemAdded, ItemDeleted, SpeechStarted
from duologue.protocol.items import (
    FunctionCallItem,
    FunctionCallOutputItem,
    InputAudio,
    InputText,
    MessageItem,
)
from duologue.protocol.response_events import AudioDelta, ResponseDone
from duologue.protocol.session_config import FunctionTool
from duologue.protocol.session_patch import (
    AudioInputPatch,
    AudioPatch,
    SessionPatch,
    TurnDetectionPatch,
)
from duologue.sessions.backlog import SLICE_BYTES
from duologue.sessions.session_maker import NO_CHANGE
from duologue.sessions.settings import ListeningSettings, SessionSettings
from duologue.sessions.speaking.response import ResponseState
from duologue.sessions.watching.bounds import fills_of
from tests.fakes.call import FakeCall
from tests.fakes.engine import FakeEngine
from tests.fakes.plugin import STAGE
from tests.state.session_contract import CREDIT_MS, ContractPlugin

SETTINGS = SessionSettings(
    send_lead_ms=400,
    output_buffer_ms=2000,
    output_buffer_bytes=200_000,
    output_events=200,
    max_items=3,
    listening=ListeningSettings(soft_pause_ms=300),
)
CLIENT_FAULTS = "invalid_request_error"
RATE_HZ = 24000


class SessionModel(RuleBasedStateMachine):
    """The invariants of the wire, of bounds and of lanes, in every order of events."""

    patch = NO_CHANGE
    """What the call is opened with."""

    settings = SETTINGS
    resumable = False
    ends: tuple[str | None, ...] = (None, "client_too_slow")
    """How a connection may end."""

    @initialize()
    def call_begins(self) -> None:
        engine = FakeEngine(pipelines=(STAGE, "vad", "asr", "end_of_turn"))
        self.plugin = ContractPlugin()
        self.call = FakeCall(
            self.plugin, engine, self.settings, patch=self.patch, resumable=self.resumable
        )
        tools = (FunctionTool(name="look"),)
        self.call.send(UpdateSession(session=SessionPatch(tools=tools)))
        self.client = self.call.client
        self.gone: list[str] = []
        """Requests that have ended or were cancelled: a late engine may still speak for them."""
        self.mirror: list[str] = []
        """The conversation as a client has it that believes every event."""
        self.read_events = 0

    def alive(self) -> bool:
        return len(self.call.manager) == 1

    def missing(self) -> bool:
        """Whether something that was written has not come through."""
        return False

    # The person

    @precondition(alive)
    @rule(windows=st.integers(1, 12))
    def person_speaks(self, windows: int) -> None:
        self._while_watching_interruptions(lambda: self.call.say(windows))

    @precondition(alive)
    @rule(windows=st.integers(1, 12))
    def person_is_silent(self, windows: int) -> None:
        self._while_watching_interruptions(lambda: self.call.hush(windows))

    # The client

    @precondition(alive)
    @rule(
        out_of_band=st.booleans(),
        text=st.booleans(),
        required=st.booleans(),
        interrupt=st.booleans(),
    )
    def client_wants_an_answer(
        self, out_of_band: bool, text: bool, required: bool, interrupt: bool
    ) -> None:
        params = ResponseParams(
            conversation="none" if out_of_band else "auto",
            output_modalities=("text",) if text else ("audio",),
            tool_choice="required" if required else "auto",
            interrupt=interrupt,
        )
        active = self.call.machine.speaking.active
        self.call.send(CreateResponse(response=params))
        stopped = active is not None and self.call.machine.speaking.get(active.id) is None
        if active is not None and stopped and self.client.reading:
            self.client.wire.interrupted(active.id)

    @precondition(alive)
    @rule(which=st.integers(0, 20), own=st.booleans())
    def client_tells_the_output_of_a_function(self, which: int, own: bool) -> None:
        if own:
            # A client brings its history along.
            self.call.send(CreateItem(item=FunctionCallItem(name="look", arguments="{}")))
        items = [event.item for event in self.client.of(ItemAdded)]
        calls = [item.call_id for item in items if isinstance(item, FunctionCallItem)] or ["none"]
        call_id = calls[-1 - which % len(calls)]
        self.call.send(CreateItem(item=FunctionCallOutputItem(call_id=call_id, output="seen")))

    @precondition(alive)
    @rule()
    def client_cancels(self) -> None:
        active = self.call.machine.speaking.active
        self.call.send(CancelResponse())
        # Who has no connection cannot say it.
        if active is not None and self.client.reading and not self.client.gone:
            self.client.wire.interrupted(active.id)

    @precondition(alive)
    @rule(kind=st.sampled_from(["commit", "clear", "manual", "detect", "impatient"]))
    def client_handles_input(self, kind: str) -> None:
        match kind:
            case "commit":
                self.call.send(CommitAudio())
            case "clear":
                self.call.send(ClearAudio())
            case "manual":
                self.call.send(_detection(None))
            case "detect":
                self.call.send(_detection(TurnDetectionPatch(type="server_vad")))
            case "impatient":
                patch = TurnDetectionPatch(type="server_vad", idle_timeout_ms=2000)
                self.call.send(_detection(patch))

    @precondition(lambda self: self.alive() and self.call.clock.now() > 140)
    @rule()
    def client_only_listens_from_now_on(self) -> None:
        self.call.send(UpdateSession(session=SessionPatch(type="transcription")))
        if self.client.reading and self.call.machine.config.kind == "transcription":
            assert self.call.machine.speaking.all() == []

    @precondition(alive)
    @rule(
        kind=st.sampled_from(
            [
                *("truncate", "delete", "retrieve", "create", "create after", "create spoken"),
                "say a lot",
            ]
        ),
        which=st.integers(0, 20),
        at_ms=st.integers(-10, 5000),
    )
    def client_edits_the_conversation(self, kind: str, which: int, at_ms: int) -> None:
        items = [event.item.id for event in self.client.of(ItemAdded)] or ["none"]
        item_id = items[which % len(items)]
        text = MessageItem(role="user", content=(InputText(text="hello"),))
        match kind:
            case "truncate":
                self.call.send(TruncateItem(item_id=item_id, audio_end_ms=at_ms))
            case "delete":
                self.call.send(DeleteItem(item_id=item_id))
            case "retrieve":
                self.call.send(RetrieveItem(item_id=item_id))
            case "create":
                self.call.send(CreateItem(item=text))
            case "say a lot":
                # Longer than a slice: what follows waits behind it.
                self.call.send(AppendAudio(audio=bytes(2 * SLICE_BYTES)), CreateItem(item=text))
            case "create spoken":
                audio = InputAudio(audio=b"\x01\x00" * 3_000)
                self.call.send(CreateItem(item=MessageItem(role="user", content=(audio,))))
            case _:
                self.call.send(CreateItem(item=text, previous_item_id=item_id))

    @rule()
    def client_stops_reading(self) -> None:
        self.client.reading = False

    @rule()
    def client_reads_again(self) -> None:
        self.client.reading = True
        self.client.read()

    @rule(seconds=st.one_of(st.floats(0, 1), st.sampled_from([5.0, 20.0])))
    def time_passes(self, seconds: float) -> None:
        self.call.clock.advance(seconds)
        if self.alive():
            assert self.call.machine.next_deadline() > self.call.clock.now() - 0.006

    # The engine

    @precondition(lambda self: self.call.engine.submitted)
    @rule(
        which=st.integers(0, 20),
        what=st.sampled_from(["audio", "audio", "text", "mark", "call", "half"]),
        size=st.integers(1, 36_000),
    )
    def engine_speaks_perhaps_late(self, which: int, what: str, size: int) -> None:
        engine = self.call.engine
        request = engine.submitted[-1 - which % len(engine.submitted)]
        known = request.id in engine.running or request.id in self.gone
        if not known:
            return
        if request.pipeline != STAGE:
            engine.output(request.id, EndOfTurn(0.9, 0))
            return
        match what:
            case "audio":
                engine.output(request.id, AudioChunk(b"\x01\x00" * size, RATE_HZ))
            case "text":
                engine.output(request.id, TextDelta("word "))
            case "call":
                engine.output(request.id, ToolCallDelta(0, "", "look", '{"at":1}'))
            case "half":
                engine.output(request.id, ToolCallDelta(0, "more", "look", "[" * (size % 9)))
            case _:
                engine.output(request.id, SpeechMark(5, 100))

    @precondition(lambda self: self.call.engine.running)
    @rule(which=st.integers(0, 20), well=st.booleans())
    def engine_ends_a_request(self, which: int, well: bool) -> None:
        engine = self.call.engine
        request_id = list(engine.running)[which % len(engine.running)]
        self.gone.append(request_id)
        if engine.running[request_id].cancelled:
            engine.acknowledge_cancel(request_id)
        elif well:
            engine.complete(request_id)
        else:
            engine.fail(request_id)

    @precondition(lambda self: self.call.engine.of("asr"))
    @rule(text=st.sampled_from(["", "hello", "hello there"]))
    def recogniser_answers(self, text: str) -> None:
        self.call.transcribe(text)

    # What holds always

    @invariant()
    def held_output_is_bounded_and_accounted(self) -> None:
        if not hasattr(self, "call"):
            return
        speaking = self.call.machine.speaking
        buffer = speaking.buffer
        assert buffer.count_held() == (buffer.held_bytes, buffer.held_events)
        # Beginnings and ends of responses may exceed the limit by what the open ones need.
        assert buffer.held_bytes <= self.settings.output_buffer_bytes + 5 * 12 * 256
        assert buffer.held_events <= SETTINGS.output_events + 5 * 12
        backlog = self.call.session.inbox.backlog
        history = self.call.machine.history
        assert backlog.held_bytes == backlog.count_held()
        assert history.held_bytes == history.count_held()
        for bound, held, limit in fills_of(self.call.session, self.settings):
            # The output's exceptions are above.
            assert held <= limit or bound in ("output_buffer", "output_events"), bound
        # What is held to be spoken belongs to a response that goes on.
        assert buffer.has_speech() is any(
            buffer.speech_samples(response.id) for response in speaking.all()
        )

    @invariant()
    def the_server_never_blames_itself(self) -> None:
        if not hasattr(self, "call"):
            return
        assert self.call.flights == []
        assert all(e.error.type == CLIENT_FAULTS for e in self.client.of(ErrorEvent))
        assert self.client.ended in self.ends

    @invariant()
    def one_response_of_the_conversation_at_a_time(self) -> None:
        if not hasattr(self, "call"):
            return
        active = [r for r in self.call.machine.speaking.all() if not r.out_of_band]
        assert len(active) <= 1

    @invariant()
    def no_work_without_an_open_response(self) -> None:
        if not hasattr(self, "call"):
            return
        lanes = {r.lane for r in self.call.machine.speaking.all()}
        running = [f for f in self.call.engine.of(STAGE) if not f.cancelled]
        assert all(f.request.fence.lane in lanes for f in running)

    @invariant()
    def the_engine_may_make_as_much_more_as_was_sent(self) -> None:
        if not hasattr(self, "call"):
            return
        sent: dict[str, list[int]] = {}
        for event in self.client.of(AudioDelta):
            sent.setdefault(event.response_id, []).append(len(event.delta) // 2)
        for fake in self.call.engine.of(STAGE):
            response = self.call.machine.speaking.get(fake.request.fence.lane)
            if response is None or not response.audio or self.missing():
                continue
            pieces = sent.get(response.id, [])
            assert fake.credit is not None
            # Of each piece, less than a millisecond may go ungranted.
            granted_ms = fake.credit - CREDIT_MS
            assert sum(pieces) / 24 - len(pieces) <= granted_ms <= sum(pieces) / 24

    @invariant()
    def the_clients_conversation_is_the_sessions(self) -> None:
        if not hasattr(self, "call"):
            return
        events = self.client.events
        for event in events[self.read_events :]:
            match event:
                case ItemAdded(previous_item_id=previous, item=item):
                    at = 0 if previous is None else self.mirror.index(previous) + 1
                    self.mirror.insert(at, item.id)
                case ItemDeleted(item_id=item_id):
                    self.mirror.remove(item_id)
                case _:
                    pass
        self.read_events = len(events)
        history = self.call.machine.history
        if self.client.reading and self.alive() and not self.missing():
            assert len(self.mirror) == len(history)
            before = [None, *self.mirror]
            assert all(
                history.previous_id(i) == p for i, p in zip(self.mirror, before, strict=False)
            )

    @invariant()
    def the_plugin_knows_which_responses_go_on(self) -> None:
        if not hasattr(self, "call") or not self.alive():
            return
        going_on = {
            response.id
            for response in self.call.machine.speaking.all()
            if response.state is not ResponseState.DRAINING
        }
        assert self.plugin.open_responses == going_on

    @invariant()
    def nobody_heard_more_than_was_said(self) -> None:
        if not hasattr(self, "call"):
            return
        history = self.call.machine.history
        cut_off = {
            event.response.id
            for event in self.client.of(ResponseDone)
            if event.response.status in ("cancelled", "failed")
        }
        for item_id in self.mirror:
            if item_id in history and (spoken := history.get(item_id).spoken) is not None:
                assert spoken.text.startswith(spoken.heard_text())
                assert spoken.cut_sample is None or spoken.cut_sample <= spoken.samples
                # What a call followed was all said before the response failed.
                whole = spoken.complete or spoken.response_id not in cut_off
                assert spoken.cut_sample is not None or whole

    def teardown(self) -> None:
        """After the end nothing runs, and every response that began has ended on the wire."""
        if not hasattr(self, "call"):
            return
        self.call.session.close("closed")
        self.client.reading = True
        self.client.read()
        assert self.client.wire.open_responses == []
        assert all(f.cancelled for f in self.call.engine.running.values())
        assert len(self.call.manager) == 0
        assert self.call.machine.speaking.buffer.held_bytes == 0

    def _while_watching_interruptions(self, act: Callable[[], None]) -> None:
        active = self.call.machine.speaking.active
        before = len(self.client.of(SpeechStarted))
        act()
        if active is not None and len(self.client.of(SpeechStarted)) > before:
            still = self.call.machine.speaking.get(active.id)
            if still is None:
                self.client.wire.interrupted(active.id)


def _detection(patch: TurnDetectionPatch | None) -> UpdateSession:
    audio = AudioPatch(input=AudioInputPatch(turn_detection=patch))
    return UpdateSession(session=SessionPatch(audio=audio))


TestSessionState = SessionModel.TestCase
