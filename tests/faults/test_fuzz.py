"""Mutated messages, a few thousand of them; ``make fuzz`` sends a hundred thousand."""

from __future__ import annotations

from pathlib import Path

import pytest

from duologue.protocol.dialect import Encoding
from duologue.protocol.dialects import DIALECTS
from duologue.protocol.errors import ErrorCode
from tests.faults.fuzz import DialectKey, fuzz
from tests.faults.fuzz_sockets import fuzz_first_messages, fuzz_sockets
from tests.faults.good_messages import MESSAGES
from tests.faults.mutator import Mutator

SOCKET_COUNT = 300
FIRST_COUNT = 60
COUNT = 1_200
"""Of each dialect; another seed for each, so that a dialect more brings other messages too."""


@pytest.mark.parametrize(("seed", "key"), list(enumerate(DIALECTS, 1)))
async def test_no_message_harms_a_session_and_each_refusal_has_its_code(
    key: DialectKey, seed: int
) -> None:
    found = await fuzz(key, COUNT, seed)
    assert found.total() == COUNT
    assert set(found) - {"taken"} <= set(ErrorCode)
    # The mutator is neither so mild nor so wild that only one thing is tested.
    assert found["taken"] > COUNT / 20
    assert len(found) > 10


@pytest.mark.parametrize("key", list(DIALECTS))
async def test_no_message_harms_a_connection_or_the_one_beside_it(
    key: DialectKey, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    assert await fuzz_sockets(tmp_path, key, SOCKET_COUNT, 5) < SOCKET_COUNT / 10


@pytest.mark.parametrize("encoding", ["json", "msgpack"])
async def test_no_first_message_harms_the_server(
    encoding: Encoding, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    calls = await fuzz_first_messages(tmp_path, ("duplex", encoding), FIRST_COUNT, 3)
    assert FIRST_COUNT / 2 < calls <= FIRST_COUNT


def test_the_same_seed_spoils_messages_in_the_same_way() -> None:
    one, two, other = (Mutator(MESSAGES["realtime"], seed) for seed in (1, 1, 2))
    first = [one.message() for _ in range(50)]
    assert first == [two.message() for _ in range(50)]
    assert first != [other.message() for _ in range(50)]
    assert len(set(first)) > 40
