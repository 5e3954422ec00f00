"""A bounded queue that refuses instead of waiting."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.core.mailbox import Mailbox, MailboxFull


@given(capacity=st.integers(1, 4), moves=st.lists(st.one_of(st.none(), st.integers()), max_size=40))
def test_it_behaves_as_a_list_that_refuses_what_is_too_much(
    capacity: int, moves: list[int | None]
) -> None:
    mailbox: Mailbox[int] = Mailbox(capacity)
    model: list[int] = []
    refused = 0
    for item in moves:
        if item is None:
            assert mailbox.take() == (model.pop(0) if model else None)
        elif len(model) < capacity:
            mailbox.put(item)
            model.append(item)
        else:
            refused += 1
            with pytest.raises(MailboxFull):
                mailbox.put(item)
        assert (len(mailbox), mailbox.refused) == (len(model), refused)


def test_a_refusal_names_the_limit_and_is_the_senders_to_repeat() -> None:
    mailbox: Mailbox[str] = Mailbox(1)
    mailbox.put("a")
    with pytest.raises(MailboxFull, match="1 inputs are waiting, the limit is 1") as refusal:
        mailbox.put("b")
    assert refusal.value.code == "rate_limited"
    assert mailbox.take() == "a"
    assert mailbox.take() is None
