"""No order of events breaks the contract: see the assertions of ``SessionModel``."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from duologue.duplex_plugins.cascaded.settings import CascadedSettings
from duologue.duplex_plugins.contract import (
    ConfigChanged,
    ConversationChanged,
    ItemView,
    PluginConfig,
    ResponseOutcome,
    ResponseRequested,
    TranscriptKind,
    Turn,
    TurnKind,
    UserTranscript,
)
from duologue.duplex_plugins.retention import Retention
from duologue.engines.payloads import TextDelta, TokenUsage, ToolCallDelta, Tools, ToolSpec
from tests.unit.duplex_plugins.cascaded.session_model import Response, SessionModel

TEXTS = st.sampled_from(["What time is it?"] * 4 + ["What time", "And you?", "Hello.", "", " "])
PIECES = st.lists(
    st.sampled_from(
        ["Well", ",", " it is", " half past 3", ".", " ", "\n", "😊", "- ", " Dr", "!"]
    ),
    min_size=1,
    max_size=8,
)
CONFIGS = st.builds(
    PluginConfig,
    instructions=st.sampled_from(["", "Rhyme."]),
    audio_out=st.booleans(),
    max_output_tokens=st.sampled_from([None, 5]),
    tools=st.sampled_from([Tools(), Tools((ToolSpec("look"),))]),
    retention=st.sampled_from([Retention(), Retention(allowed=False, max_tokens=100)]),
)
CALLS = st.sampled_from([(), (), (ToolCallDelta(0, "", "look", "{}"),), (ToolCallDelta(0),)])


class CascadeMachine(RuleBasedStateMachine):
    """A person who changes their mind, a client that does as it likes, stages that fail."""

    def __init__(self) -> None:
        super().__init__()
        self.model = SessionModel(CascadedSettings(greeting="Hello there. Speak!"))
        self.config = PluginConfig()
        self.conversation: list[ItemView] = []
        self.turns = 0
        self.floor = TurnKind.COMMITTED

    # The person

    @precondition(lambda self: self.floor is TurnKind.COMMITTED)
    @rule()
    def begins_to_speak(self) -> None:
        self.turns += 1
        self.move_floor(TurnKind.STARTED)

    @precondition(lambda self: self.floor in (TurnKind.STARTED, TurnKind.RESUMED))
    @rule()
    def pauses(self) -> None:
        self.move_floor(TurnKind.PAUSING)

    @precondition(lambda self: self.floor is TurnKind.PAUSING)
    @rule()
    def goes_on(self) -> None:
        self.move_floor(TurnKind.RESUMED)

    @precondition(lambda self: self.floor is not TurnKind.COMMITTED)
    @rule(text=TEXTS, kind=st.sampled_from([TranscriptKind.PARTIAL, TranscriptKind.SPECULATIVE]))
    def is_heard_so_far(self, text: str, kind: TranscriptKind) -> None:
        self.model.give(UserTranscript(self.item_id, text, kind))

    @precondition(lambda self: self.floor is not TurnKind.COMMITTED)
    @rule(text=st.one_of(st.none(), TEXTS))
    def ends_a_turn(self, text: str | None) -> None:
        self.conversation.append(ItemView(id=self.item_id, role="user", text=None))
        self.tell_conversation()
        self.move_floor(TurnKind.COMMITTED)
        if text is not None:
            self.understand(self.item_id, text)

    @precondition(lambda self: self.floor is not TurnKind.COMMITTED)
    @rule()
    def takes_the_audio_back(self) -> None:
        self.move_floor(TurnKind.ABANDONED)
        self.floor = TurnKind.COMMITTED

    @precondition(lambda self: self.unknown())
    @rule(text=TEXTS)
    def is_understood_late(self, text: str) -> None:
        self.understand(self.unknown()[0].id, text)

    # The client

    @rule(config=CONFIGS)
    def asks_for_an_answer(self, config: PluginConfig) -> None:
        response_id = f"r{len(self.model.responses)}"
        self.model.responses[response_id] = Response(config.audio_out)
        self.model.give(ResponseRequested(response_id, tuple(self.conversation), config))

    @precondition(lambda self: self.active())
    @rule(data=st.data(), heard=st.sampled_from(["", "Well"]))
    def interrupts(self, data: st.DataObject, heard: str) -> None:
        response_id = data.draw(st.sampled_from(self.active()))
        self.model.interrupt(response_id, heard)

    @rule(config=CONFIGS)
    def changes_the_configuration(self, config: PluginConfig) -> None:
        self.config = config
        self.model.give(ConfigChanged(config))

    @rule(role=st.sampled_from(["user", "assistant", "system"]))
    def adds_an_item(self, role: str) -> None:
        self.turns += 1
        item = ItemView(id=self.item_id, role=role, text="Something.")
        self.conversation.append(item)
        self.tell_conversation()

    # The stages

    @precondition(lambda self: self.model.running("llm"))
    @rule(data=st.data(), pieces=PIECES, calls=CALLS, ends=st.sampled_from([False, False, True]))
    def model_writes(
        self,
        data: st.DataObject,
        pieces: list[str],
        calls: tuple[ToolCallDelta, ...],
        ends: bool,
    ) -> None:
        key = self.draw_stage(data, "llm")
        if self.model.stages[key].request.max_tokens:
            self.model.output(key, *map(TextDelta, pieces), *calls)
        if ends and key in self.model.stages:
            self.model.output(key, TokenUsage(9, len(pieces)))
            self.finish(key)

    @precondition(lambda self: self.model.running("tts"))
    @rule(data=st.data())
    def voice_speaks(self, data: st.DataObject) -> None:
        key = self.draw_stage(data, "tts")
        self.model.speak_all(key)
        if not self.model.stages[key].more_input:
            self.finish(key)

    @precondition(lambda self: self.model.running("tts"))
    @rule(data=st.data(), fails=st.booleans())
    def voice_breaks_off(self, data: st.DataObject, fails: bool) -> None:
        key = self.draw_stage(data, "tts")
        self.model.fail_stage(key) if fails else self.model.end_stage(key)

    @precondition(lambda self: self.model.running("llm"))
    @rule(data=st.data(), bad_luck=st.sampled_from([False, False, True]))
    def model_fails(self, data: st.DataObject, bad_luck: bool) -> None:
        if bad_luck:
            self.model.fail_stage(self.draw_stage(data, "llm"))

    @invariant()
    def work_without_a_response_is_bounded(self) -> None:
        loose = [s for s in self.model.stages.values() if s.response_id is None]
        assert len(loose) <= 2, "one speculation, one that reads ahead"

    @invariant()
    def every_stage_of_a_response_belongs_to_one_that_is_active(self) -> None:
        for stage in self.model.stages.values():
            assert stage.response_id is None or self.model.responses[stage.response_id].active

    @invariant()
    def nothing_is_kept_of_what_is_over(self) -> None:
        state = self.model.state
        assert state.drafts.keys() <= self.model.stages.keys()
        assert state.answers.keys() | state.waiting.keys() == set(self.active())

    def teardown(self) -> None:
        """Let everything come to its end: nothing may be left over."""
        for item in self.unknown():
            self.understand(item.id, "At last.")
        for _ in range(100):
            for stage in self.model.running("llm"):
                self.model.output(stage.key, TextDelta(" Done."))
                self.finish(stage.key)
            for stage in self.model.running("tts"):
                self.model.speak_all(stage.key)
                if not stage.more_input:
                    self.finish(stage.key)
            if not self.model.stages:
                break
        assert self.model.stages == {}, "a stage never ends"
        for response in self.model.responses.values():
            assert not response.active, "a response never ends"
            if response.end is not None and response.end.outcome is ResponseOutcome.COMPLETED:
                assert response.marks == sorted(response.marks)
                if response.clause_ends:
                    assert response.marks[-1] == len(response.text)

    # Help

    @property
    def item_id(self) -> str:
        return f"u{self.turns}"

    def move_floor(self, kind: TurnKind) -> None:
        self.floor = kind
        self.model.give(Turn(kind, self.item_id, 0))

    def tell_conversation(self) -> None:
        self.model.give(ConversationChanged(tuple(self.conversation)))

    def understand(self, item_id: str, text: str) -> None:
        self.conversation = [
            replace(item, text=text) if item.id == item_id else item for item in self.conversation
        ]
        self.tell_conversation()
        self.model.give(UserTranscript(item_id, text, TranscriptKind.FINAL))

    def active(self) -> list[str]:
        return [key for key, response in self.model.responses.items() if response.active]

    def unknown(self) -> list[ItemView]:
        return [item for item in self.conversation if item.text is None]

    def draw_stage(self, data: st.DataObject, pipeline: str) -> str:
        return data.draw(st.sampled_from(sorted(s.key for s in self.model.running(pipeline))))

    def finish(self, key: str) -> None:
        if key in self.model.stages:
            self.model.end_stage(key)


TestCascade = CascadeMachine.TestCase
