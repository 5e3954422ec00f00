from __future__ import annotations

from collections.abc import Collection

from duologue.sessions.speaking.silencer import Silencer


class Holder:
    def __init__(self) -> None:
        self.told: list[str | tuple[str, ...]] = []

    def withdraw(self, item_id: str) -> None:
        self.told.append(item_id)

    def withdraw_all(self, beside: Collection[str]) -> None:
        self.told.append(tuple(beside))


def test_where_nobody_holds_sound_nobody_is_told() -> None:
    silencer = Silencer()
    silencer.withdraw("a")
    silencer.withdraw_all(())


def test_journal_and_connection_are_told_the_same() -> None:
    silencer = Silencer()
    silencer.journal, silencer.connection = journal, connection = Holder(), Holder()
    silencer.withdraw("a")
    silencer.withdraw_all({"resp_2"})
    assert journal.told == connection.told == ["a", ("resp_2",)]


def test_a_connection_that_has_gone_is_told_nothing_more() -> None:
    silencer = Silencer()
    silencer.journal, silencer.connection = journal, first = Holder(), Holder()
    silencer.connection = second = Holder()
    silencer.withdraw("a")
    assert (first.told, second.told, journal.told) == ([], ["a"], ["a"])
