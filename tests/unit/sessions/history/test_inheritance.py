from __future__ import annotations

from duologue.protocol.items import InputText, MessageItem
from duologue.protocol.session_config import SessionConfig
from duologue.sessions.history.inheritance import Carried, Inheritance


def inheritance(*words: int) -> Inheritance:
    items = (
        MessageItem(id=f"item_{n}", role="user", content=(InputText(text="x" * n),)) for n in words
    )
    return Inheritance(
        session_id="sess_1",
        model="model",
        config=SessionConfig(),
        items=tuple(Carried(item=item) for item in items),
        next_sample=0,
        unanswered=False,
        edge_plays=False,
    )


def test_a_conversation_counts_as_its_words_and_a_little_for_each_item() -> None:
    assert inheritance().held_bytes == 0
    one, two = inheritance(1000).held_bytes, inheritance(1000, 1001).held_bytes
    assert 1000 < one < 1500
    assert two - one == one + 1
