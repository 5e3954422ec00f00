"""What a session owes its plugin and its client, checked as it happens."""

from __future__ import annotations

from collections.abc import Sequence

from duologue.duplex_plugins.contract import (
    Capabilities,
    ConversationChanged,
    EndResponse,
    Interrupted,
    ItemView,
    PluginEffect,
    PluginInput,
    RequestEnded,
    RequestFailed,
    RequestOutput,
    ResponseRequested,
)
from tests.fakes.plugin import FakePlugin

CREDIT_MS = 1000


class ContractPlugin(FakePlugin):
    """A plugin that holds the session to its contract.

    Nothing of a response comes before its request, nor after its end; no conversation holds a
    call without an output behind it, or an output without its call.
    """

    def __init__(self) -> None:
        super().__init__(Capabilities(reads_transcripts=True), credit=CREDIT_MS)
        self.open_responses: set[str] = set()

    def step(self, state: FakePlugin, item: PluginInput) -> Sequence[PluginEffect]:
        match item:
            case ResponseRequested(response_id=response_id):
                assert response_id not in self.open_responses
                check_pairs(item.conversation)
                self.open_responses.add(response_id)
            case RequestOutput(key=key) | RequestEnded(key=key) | RequestFailed(key=key):
                assert key in self.open_responses, f"{item} after the end of its response"
            case Interrupted(response_id=response_id):
                self.open_responses.discard(response_id)
            case ConversationChanged(conversation=conversation):
                check_pairs(conversation)
            case _:
                pass
        effects = super().step(state, item)
        for effect in effects:
            if isinstance(effect, EndResponse):
                self.open_responses.discard(effect.response_id)
        return effects


def check_pairs(conversation: Sequence[ItemView]) -> None:
    waiting: list[str] = []
    for view in conversation:
        if view.call is not None:
            waiting.append(view.call.call_id)
        elif view.role == "tool":
            waiting.remove(view.call_id)
        else:
            assert waiting == []
    assert waiting == []
