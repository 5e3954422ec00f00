from __future__ import annotations

from duologue.clients.reconnect.line_watch import LineWatch, Verdict

SILENCE_S = 5.0


def looks(watch: LineWatch, start: float, end: float) -> list[tuple[float, Verdict]]:
    """What regular looks show, without those that find nothing to do."""
    seen = []
    at = start
    while at <= end:
        verdict = watch.look(at)
        if verdict is not Verdict.FINE:
            seen.append((at, verdict))
        if verdict is Verdict.DEAD:
            break
        at += watch.look_every_s
    return seen


def test_a_silent_line_is_asked_and_then_dead() -> None:
    watch = LineWatch(SILENCE_S, now=0.0)
    seen = looks(watch, 0.0, 20.0)
    asked = [at for at, verdict in seen if verdict is Verdict.ASK]
    assert len(asked) == 2
    assert seen[-1][1] is Verdict.DEAD
    assert SILENCE_S <= seen[-1][0] <= SILENCE_S + watch.look_every_s


def test_a_line_that_answers_lives() -> None:
    watch = LineWatch(SILENCE_S, now=0.0)
    at = 0.0
    asked = 0
    while at < 60:
        match watch.look(at):
            case Verdict.ASK:
                asked += 1
                watch.heard(at + 0.1)
            case Verdict.DEAD:
                raise AssertionError("it answers")
            case Verdict.FINE:
                pass
        at += watch.look_every_s
    assert 20 < asked < 40


def test_who_was_asleep_blames_nobody() -> None:
    watch = LineWatch(SILENCE_S, now=0.0)
    watch.look(0.1)
    # A minute went by in which nobody looked; what came in it is still to be read.
    assert watch.look(60.0) is not Verdict.DEAD
    seen = looks(watch, 60.5, 80.0)
    assert seen[-1][1] is Verdict.DEAD
    assert seen[-1][0] < 60.0 + SILENCE_S
