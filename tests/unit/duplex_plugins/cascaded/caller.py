"""A person and a client, who talk with the plugin through the model of a session."""

from __future__ import annotations

from duologue.duplex_plugins.cascaded.settings import CascadedSettings
from duologue.duplex_plugins.contract import (
    ConversationChanged,
    ItemView,
    PluginConfig,
    ResponseRequested,
    TranscriptKind,
    Turn,
    TurnKind,
    UserTranscript,
)
from duologue.engines.payloads import TextDelta, TokenUsage
from tests.unit.duplex_plugins.cascaded.session_model import Response, SessionModel, Stage

QUESTION = "What is the capital of France?"


class Call(SessionModel):
    """A person and a client."""

    def __init__(self, **settings: object) -> None:
        super().__init__(CascadedSettings(**settings))
        self.config = PluginConfig()
        self.conversation: list[ItemView] = []

    def turn(self, kind: TurnKind, item_id: str = "u1") -> object:
        return self.give(Turn(kind, item_id, 0))

    def transcript(self, kind: TranscriptKind, text: str, item_id: str = "u1") -> object:
        return self.give(UserTranscript(item_id, text, kind))

    def say(self, text: str | None, item_id: str = "u1") -> None:
        self.add(ItemView(id=item_id, role="user", text=text))

    def add(self, item: ItemView) -> None:
        self.conversation.append(item)
        assert self.give(ConversationChanged(tuple(self.conversation))) == []

    def is_heard(self, response_id: str, heard: str) -> None:
        """The response was interrupted, or its playback was cut."""
        self.interrupt(response_id, heard)
        item_id = f"i-{response_id}"
        self.conversation = [item for item in self.conversation if item.id != item_id]
        self.add(ItemView(id=item_id, role="assistant", text=heard, interrupted=True))

    def request(self, response_id: str = "r1", config: PluginConfig | None = None) -> object:
        config = config or self.config
        self.responses[response_id] = Response(config.audio_out)
        return self.give(ResponseRequested(response_id, tuple(self.conversation), config))

    def pause(self, text: str = QUESTION, item_id: str = "u1") -> object:
        self.turn(TurnKind.STARTED, item_id)
        self.turn(TurnKind.PAUSING, item_id)
        return self.transcript(TranscriptKind.SPECULATIVE, text, item_id)

    def commit(self, text: str = QUESTION, item_id: str = "u1", response_id: str = "r1") -> object:
        self.turn(TurnKind.COMMITTED, item_id)
        self.transcript(TranscriptKind.FINAL, text, item_id)
        self.say(text, item_id)
        return self.request(response_id)

    def llm(self) -> Stage:
        (stage,) = self.running("llm")
        return stage

    def answer(self, *pieces: str, response_id: str = "r1") -> None:
        """Let the model write all of it and the voice say it."""
        key = self.llm().key
        self.output(key, *map(TextDelta, pieces), TokenUsage(10, len(pieces)))
        self.end_stage(key)
        voice = self.of(response_id, "tts")
        if voice is not None:
            self.speak_all(voice.key)
            self.end_stage(voice.key)
        said = self.responses[response_id].text
        if said:
            self.add(ItemView(id=f"i-{response_id}", role="assistant", text=said))
