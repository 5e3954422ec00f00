"""When the recogniser is asked, and which of its answers are passed on."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from duologue.core.audio import AudioFrame
from duologue.duplex_plugins.contract import TranscriptKind
from duologue.engines.payloads import AudioChunk, DecodeSpeech, Payload, Transcript
from duologue.sessions.effects import AppendInput, CancelRequest, SubmitRequest
from duologue.sessions.hearing.transcription import Transcriber, TranscriptReady
from duologue.sessions.requests import Asker, Requests

RATE_HZ = 1000
"""One sample is a millisecond."""


def frame(start: int, samples: int) -> AudioFrame:
    return AudioFrame(b"\x01\x00" * samples, RATE_HZ, start)


class Bench:
    """A transcriber, and what it asks of the engine."""

    def __init__(self, partial_ms: int | None = 500) -> None:
        self.requests = Requests("s")
        self.transcriber = Transcriber(self.requests, "asr", RATE_HZ, partial_ms)

    def asked(self) -> list[Payload]:
        """Inputs since the last call."""
        effects = self.requests.take_effects()
        return [effect.payload for effect in effects if isinstance(effect, AppendInput)]

    def decodes(self) -> list[DecodeSpeech]:
        return [payload for payload in self.asked() if isinstance(payload, DecodeSpeech)]

    def answer(self, text: str, end: int, kind: str = "final") -> TranscriptReady | None:
        decoded = Transcript(text, "final" if kind == "final" else "partial", end)
        return self.transcriber.on_transcript("a", decoded)


def test_a_recogniser_gets_the_turn_from_its_beginning_in_order() -> None:
    bench = Bench()
    bench.transcriber.begin("a", frame(200, 300))
    bench.transcriber.append("a", frame(500, 100))
    chunks = [payload for payload in bench.asked() if isinstance(payload, AudioChunk)]
    assert [(chunk.start_sample, len(chunk.pcm) // 2) for chunk in chunks] == [
        (200, 300),
        (500, 100),
    ]


def test_a_turn_without_audio_so_far_is_opened_all_the_same() -> None:
    bench = Bench()
    bench.transcriber.begin("a", frame(0, 0))
    (submitted,) = bench.requests.take_effects()
    assert isinstance(submitted, SubmitRequest)
    assert submitted.request.more_input


def test_partials_are_asked_for_now_and_then() -> None:
    bench = Bench(partial_ms=500)
    bench.transcriber.begin("a", frame(0, 100))
    for start in range(100, 1300, 100):
        bench.transcriber.append("a", frame(start, 100))
    assert bench.decodes() == [DecodeSpeech("partial", 600), DecodeSpeech("partial", 1100)]


def test_a_partial_never_displaces_a_final_that_is_still_waiting() -> None:
    bench = Bench(partial_ms=500)
    bench.transcriber.begin("a", frame(0, 100))
    bench.transcriber.pause("a", 90)
    bench.transcriber.append("a", frame(100, 600))
    assert bench.decodes() == [DecodeSpeech("final", 90)]
    bench.transcriber.resume("a")
    bench.transcriber.append("a", frame(700, 100))
    assert bench.decodes() == [DecodeSpeech("partial", 800)]


def test_partials_may_be_switched_off() -> None:
    bench = Bench(partial_ms=None)
    bench.transcriber.begin("a", frame(0, 100))
    bench.transcriber.append("a", frame(100, 5000))
    assert bench.decodes() == []


def test_a_right_speculation_is_the_transcript_without_another_word() -> None:
    bench = Bench()
    bench.transcriber.begin("a", frame(0, 400))
    bench.transcriber.pause("a", 300)
    assert bench.decodes() == [DecodeSpeech("final", 300)]
    speculative = bench.answer("hello", 300)
    assert speculative == TranscriptReady("a", "hello", TranscriptKind.SPECULATIVE, "", 400)
    final = bench.transcriber.commit("a", 300)
    assert final == TranscriptReady("a", "hello", TranscriptKind.FINAL, "", 300)
    assert bench.decodes() == []
    assert "a" not in bench.transcriber


def test_a_speculation_that_is_still_on_its_way_is_waited_for() -> None:
    bench = Bench()
    bench.transcriber.begin("a", frame(0, 400))
    bench.transcriber.pause("a", 300)
    assert bench.transcriber.commit("a", 300) is None
    assert bench.decodes() == [DecodeSpeech("final", 300)]
    final = bench.answer("hello", 300)
    assert final is not None
    assert final.kind is TranscriptKind.FINAL


def test_a_speculation_about_a_pause_that_was_none_counts_nothing() -> None:
    bench = Bench()
    bench.transcriber.begin("a", frame(0, 400))
    bench.transcriber.pause("a", 300)
    bench.answer("hello", 300)
    bench.transcriber.resume("a")
    assert bench.answer("hello", 300) is None
    bench.transcriber.append("a", frame(400, 100))
    assert bench.transcriber.commit("a", 450) is None
    assert bench.decodes()[-1] == DecodeSpeech("final", 450)
    assert bench.answer("hello", 300) is None
    final = bench.answer("hello there", 450)
    assert final == TranscriptReady("a", "hello there", TranscriptKind.FINAL, "", 450)


def test_a_recogniser_is_let_go_once_it_has_said_all() -> None:
    bench = Bench()
    bench.transcriber.begin("a", frame(0, 400))
    request = bench.requests.find(Asker.TRANSCRIBER, "a")
    assert request is not None
    bench.transcriber.commit("a", 400)
    bench.answer("hello", 400)
    assert bench.requests.take_effects()[-1] == CancelRequest(request.request_id)


def test_a_recogniser_that_ended_by_itself_needs_no_goodbye() -> None:
    bench = Bench()
    bench.transcriber.begin("a", frame(0, 400))
    bench.transcriber.pause("a", 400)
    bench.answer("hello", 400)
    bench.requests.cancel(Asker.TRANSCRIBER, "a")
    bench.requests.take_effects()
    assert bench.transcriber.commit("a", 400) is not None
    assert bench.requests.take_effects() == ()


def test_without_a_recogniser_nothing_is_fed_or_asked() -> None:
    bench = Bench()
    bench.transcriber.begin("a", frame(0, 400))
    bench.requests.cancel(Asker.TRANSCRIBER, "a")
    bench.requests.take_effects()
    bench.transcriber.append("a", frame(400, 1000))
    bench.transcriber.commit("a", 1400)
    assert bench.requests.take_effects() == ()


def test_what_two_partials_in_a_row_agree_on_is_stable() -> None:
    bench = Bench()
    bench.transcriber.begin("a", frame(0, 400))
    answers = ["I need", "I need a tax", "I need a taxi", "I knead a taxi", "I knead the taxi now"]
    ready = [bench.answer(text, 400, "partial") for text in answers]
    assert [each.stable for each in ready if each is not None] == [
        "",
        "I need",
        "I need a",
        "I need a",
        "I need a",
    ]


def test_partials_that_come_too_late_or_say_nothing_are_no_news() -> None:
    bench = Bench()
    bench.transcriber.begin("a", frame(0, 400))
    assert bench.answer("", 400, "partial") is None
    bench.transcriber.commit("a", 400)
    assert bench.answer("hello", 400, "partial") is None


def test_a_dropped_turn_is_cancelled_and_heard_of_no_more() -> None:
    bench = Bench()
    bench.transcriber.begin("a", frame(0, 400))
    bench.requests.take_effects()
    bench.transcriber.drop("a")
    (cancelled,) = bench.requests.take_effects()
    assert isinstance(cancelled, CancelRequest)
    assert bench.answer("hello", 400) is None
    bench.transcriber.drop("a")
    assert bench.requests.take_effects() == ()


def test_of_a_turn_that_it_does_not_know_it_wants_to_know_nothing() -> None:
    bench = Bench()
    bench.transcriber.append("x", frame(0, 100))
    bench.transcriber.pause("x", 100)
    bench.transcriber.resume("x")
    assert bench.transcriber.commit("x", 100) is None
    assert bench.requests.take_effects() == ()


def test_a_lost_recogniser_leaves_only_a_committed_turn_without_text() -> None:
    bench = Bench()
    bench.transcriber.begin("a", frame(0, 400))
    assert not bench.transcriber.failed("a")
    bench.transcriber.begin("a", frame(0, 400))
    bench.transcriber.commit("a", 400)
    assert bench.transcriber.failed("a")
    assert not bench.transcriber.failed("a")


WORDS = st.lists(st.sampled_from(["I", "need", "a", "taxi"]), max_size=5).map(" ".join)


@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.sampled_from(["append", "pause", "resume", "commit"]), st.just("")),
            st.tuples(st.sampled_from(["partial", "final"]), WORDS),
        ),
        max_size=30,
    )
)
def test_the_stable_part_never_shrinks_and_there_is_one_final_transcript(
    steps: list[tuple[str, str]],
) -> None:
    bench = Bench()
    bench.transcriber.begin("a", frame(0, 400))
    end, stable, finals = 400, "", 0
    for step, text in steps:
        ready: TranscriptReady | None = None
        match step:
            case "append":
                bench.transcriber.append("a", frame(end, 100))
                end += 100
            case "pause":
                bench.transcriber.pause("a", end)
            case "resume":
                bench.transcriber.resume("a")
            case "commit":
                ready = bench.transcriber.commit("a", end)
            case _:
                ready = bench.answer(text, end, step)
        if ready is not None:
            assert finals == 0
            assert ready.stable.startswith(stable)
            stable = ready.stable
            finals += ready.kind is TranscriptKind.FINAL


def test_a_partial_stays_due_as_long_as_nobody_wants_it() -> None:
    bench = Bench(partial_ms=500)
    bench.transcriber.begin("a", frame(0, 100))
    bench.transcriber.append("a", frame(100, 600), wanted=False)
    assert bench.decodes() == []
    bench.transcriber.append("a", frame(700, 20))
    assert bench.decodes() == [DecodeSpeech("partial", 720)]


def test_after_a_pause_the_next_partial_is_as_far_off_as_after_a_partial() -> None:
    bench = Bench(partial_ms=500)
    bench.transcriber.begin("a", frame(0, 100))
    bench.transcriber.append("a", frame(100, 450))
    bench.transcriber.pause("a", 500)
    bench.transcriber.resume("a")
    bench.transcriber.append("a", frame(550, 400))
    assert bench.decodes() == [DecodeSpeech("final", 500)]
    bench.transcriber.append("a", frame(950, 50))
    assert bench.decodes() == [DecodeSpeech("partial", 1000)]


def test_what_was_understood_at_a_pause_counts_as_an_answer_that_words_are_agreed_with() -> None:
    bench = Bench()
    bench.transcriber.begin("a", frame(0, 400))
    bench.transcriber.pause("a", 300)
    bench.answer("I feel tired", 300)
    bench.transcriber.resume("a")
    partial = bench.answer("I feel tired today", 900, "partial")
    assert partial is not None
    assert partial.stable == "I feel tired"
