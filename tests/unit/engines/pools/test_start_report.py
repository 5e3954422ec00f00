from __future__ import annotations

from duologue.engines.pools.start_report import StartReport, StartTimeline, lines, report


def timeline(*spent: tuple[str, float]) -> StartTimeline:
    made, now = StartTimeline(), 100.0
    made.begin(now)
    for phase, spent_s in spent:
        if phase != "wait":
            made.enter(phase, now)
        now += spent_s
    made.end(now)
    return made


def test_phases_are_timed_from_one_to_the_next() -> None:
    made = StartTimeline()
    made.begin(5.0)
    assert made.phase == "wait"
    made.enter("spawn", 5.5)
    made.enter("load", 6.0)
    assert made.phase == "load"
    made.end(8.0)
    assert made.phases == {"wait": 0.5, "spawn": 0.5, "load": 2.0}
    assert (made.took_s, made.phase) == (3.0, "")


def test_another_start_begins_anew() -> None:
    made = timeline(("load", 3.0))
    made.begin(200.0)
    made.end(201.0)
    assert made.phases == {"wait": 1.0}


def test_the_slowest_goes_first_and_waiting_is_not_work() -> None:
    slow, quick = timeline(("wait", 1), ("load", 3)), timeline(("spawn", 0.5), ("load", 0.5))
    made = report([("quick/0", quick), ("slow/0", slow)], 4.0)
    assert [each.worker for each in made.workers] == ["slow/0", "quick/0"]
    assert made.workers[0].phases == {"wait": 1.0, "load": 3.0}
    assert (made.took_s, made.summed_s) == (4.0, 4.0)


def test_a_person_reads_a_line_for_each_worker() -> None:
    slow = timeline(("spawn", 0.4), ("import", 0.01), ("load", 3), ("warm_up", 0.25))
    made = report([("llm/0", slow), ("vad/0", timeline(("spawn", 0.3)))], 3.7)
    assert lines(made) == [
        "2 models loaded in 3.7 s (4.0 s one after the other)",
        "  llm/0    3.7 s  spawn 0.4, load 3.0, warm up 0.2",
        "  vad/0    0.3 s  spawn 0.3",
    ]
    assert lines(report([("vad/0", timeline(("spawn", 0.3)))], 0.3))[0] == "1 model loaded in 0.3 s"
    assert lines(StartReport(0.0, 0.0, [])) == []
