from __future__ import annotations

from duologue.duplex_plugins.lockstep.stuck_check import StuckCheck
from duologue.engines.payloads import LockstepFrame


def verdicts(check: StuckCheck, frames: list[LockstepFrame], *, quiet: bool = False) -> list[bool]:
    return [check.is_stuck(frame, quiet=quiet) for frame in frames]


def sound(*codes: int) -> LockstepFrame:
    return LockstepFrame(0, b"", codes=codes)


def word(token: int, code: int) -> LockstepFrame:
    return LockstepFrame(0, b"", f" {token}", token, (code,))


def test_one_sound_without_end_is_a_stuck_model() -> None:
    assert verdicts(StuckCheck(3, 9), [sound(1)] * 3) == [False, False, True]


def test_a_sound_that_changes_is_none() -> None:
    assert not any(verdicts(StuckCheck(3, 9), [sound(1), sound(1), sound(2), sound(2), sound(1)]))


def test_silence_may_last() -> None:
    assert not any(verdicts(StuckCheck(3, 9), [sound(1)] * 9, quiet=True))


def test_a_worker_that_does_not_tell_codes_is_not_judged_by_them() -> None:
    assert not any(verdicts(StuckCheck(3, 9), [sound()] * 9))


def test_one_word_over_and_over_is_a_stuck_model_whatever_is_between() -> None:
    frames = [word(5, 1), sound(2), word(5, 3), sound(4), word(5, 5)]
    assert verdicts(StuckCheck(9, 3), frames) == [False, False, False, False, True]


def test_other_words_between_are_speech() -> None:
    words = [word(token, code) for code, token in enumerate((5, 5, 6, 5, 5))]
    assert not any(verdicts(StuckCheck(9, 3), words))
