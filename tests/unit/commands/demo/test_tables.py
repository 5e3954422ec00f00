from __future__ import annotations

from io import StringIO

from rich.console import Console

from duologue.commands.demo.checks import Check
from duologue.commands.demo.tables import check_lines, interruption_lines, latency_table, wait_s
from tests.unit.commands.demo.scene import good_call


def shown(what: object) -> str:
    out = StringIO()
    Console(file=out, width=120).print(what)
    return out.getvalue()


def test_each_step_is_told_from_the_end_of_the_speech() -> None:
    table = shown(latency_table(good_call()))
    for step, seconds in (
        ("end of turn decided", "0.30"),
        ("question transcribed", "0.40"),
        ("first words of the answer", "0.90"),
        ("first audio arrives", "1.00"),
        ("first audible sample", "1.10"),
    ):
        (line,) = [line for line in table.splitlines() if step in line]
        assert line.split()[-3:] == [seconds] * 3


def test_what_was_not_seen_is_a_dash() -> None:
    record = good_call()
    assert record.turns[0].timing is not None
    record.turns[0].timing.audible_at = None
    record.turns[1].timing = None
    (line,) = [each for each in shown(latency_table(record)).splitlines() if "audible" in each]
    assert line.split()[-3:] == ["-", "-", "1.10"]
    assert wait_s(record, record.turns[0], None) is None


def test_the_interruption_is_told_in_plain_words() -> None:
    spoke, heard, cut = interruption_lines(good_call())
    assert "0.32 s later that was certain, and 20 ms after" in spoke
    assert heard == "heard 1.00 s: You could cook pasta"
    assert cut == "cut: with tomato sauce and basil."


def test_without_an_interruption_there_is_nothing_to_tell() -> None:
    record = good_call()
    record.answers["r1"].truncated_ms = []
    assert interruption_lines(record) == []
    del record.turns[2]
    assert interruption_lines(record) == []


def test_a_failed_check_says_what_was_seen_and_a_passed_one_only_when_asked() -> None:
    checks = [Check("good", True, "all well"), Check("bad", False, "a mess")]
    assert [line.plain for line in check_lines(checks, verbose=False)] == [
        "ok   good",
        "FAIL bad: a mess",
    ]
    assert check_lines(checks, verbose=True)[0].plain == "ok   good: all well"
