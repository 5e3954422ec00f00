"""A model's process dies, hangs or talks nonsense in the midst of a call: the call goes on.

Every response that cannot be finished fails for a reason, once, with nothing after it; the next
turn is answered; calls beside it notice nothing but the loss of their own work on that worker.
"""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from duologue.engines.settings import EngineSettings
from duologue.protocol.commands import CommitAudio, CreateResponse
from duologue.protocol.events import AudioCommitted, TranscriptionFailed
from duologue.sessions.settings import ListeningSettings, SessionSettings
from tests.faults.caller import Caller, caller_of
from tests.faults.faulty_gateway import FaultyGateway, faulty_gateway, install_models

# A test may have to wait for several workers to be started, on a machine that is busy otherwise.


@dataclass(frozen=True)
class Patience:
    """How long the server waits for a model that does not answer."""

    response_timeout_s: float = 30.0
    cancel_grace_s: float = 10.0
    detector_timeout_s: float = 10.0


@pytest.fixture
async def gateway(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[FaultyGateway]:
    install_models(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    patience: Patience = getattr(request, "param", Patience())
    engine = EngineSettings(restart_backoff_s=0.01, cancel_grace_s=patience.cancel_grace_s)
    sessions = SessionSettings(
        listening=ListeningSettings(
            end_of_turn=None, detector_timeout_s=patience.detector_timeout_s
        ),
        response_timeout_s=patience.response_timeout_s,
        send_lead_ms=1000,
    )
    async with faulty_gateway(tmp_path, engine, sessions) as gateway:
        yield gateway


@pytest.fixture
async def caller(gateway: FaultyGateway) -> AsyncIterator[Caller]:
    async with caller_of(gateway.url) as caller:
        yield caller


async def lose(gateway: FaultyGateway, stage: str) -> None:
    """Kill the worker of a stage, and let the server notice."""
    gateway.kill(stage)
    await gateway.works(stage)


# A worker is killed


async def test_a_recogniser_that_dies_in_mid_turn_is_replaced_and_the_whole_turn_is_answered(
    gateway: FaultyGateway, caller: Caller
) -> None:
    for kills in (1, 2):
        await caller.beep("hello again")
        await caller.is_noticed()
        for _ in range(kills):
            await lose(gateway, "asr")
            await caller.beep("again")
        await caller.hush(800)
        await caller.check_answer("hello again" + " again" * kills)
    assert gateway.stats("asr").restarts == 3


async def test_a_recogniser_that_dies_before_its_transcript_fails_the_response(
    gateway: FaultyGateway, caller: Caller
) -> None:
    await caller.say("asr wait")
    await caller.response_begins()
    gateway.kill("asr")
    await caller.check_failure()
    await caller.is_answered("hello again")
    assert len(caller.of(TranscriptionFailed)) == 1

    async with caller_of(gateway.url, turn_detection=None) as by_hand:
        await by_hand.beep("asr half")
        await by_hand.send(CommitAudio())
        await gateway.desk.until("asr half")
        gateway.kill("asr")
        await by_hand.until(lambda: bool(by_hand.of(TranscriptionFailed)))
        await by_hand.send(CreateResponse())
        await by_hand.check_failure()
        await by_hand.beep("hello again")
        await by_hand.send(CommitAudio(), CreateResponse())
        await by_hand.check_answer("hello again")


async def test_a_language_model_that_dies_fails_the_response_unless_nobody_has_asked_for_it_yet(
    gateway: FaultyGateway, caller: Caller
) -> None:
    await caller.say("llm wait")
    await caller.is_understood("llm wait")
    await caller.response_begins()
    await gateway.desk.until("llm wait")
    gateway.kill("llm")
    response = await caller.check_failure()
    assert response.output == ()
    await caller.is_answered("hello again")

    await caller.say("llm half")
    await caller.response_sounds()
    gateway.kill("llm")
    response = await caller.check_failure()
    assert [item.status for item in response.output] == ["incomplete"]
    await caller.is_answered("again hello")

    gateway.desk.asked.clear()
    await caller.beep("hello llm wait")
    await caller.hush(240)
    await gateway.desk.until("llm wait")
    await lose(gateway, "llm")
    await caller.hush(600)
    await caller.check_answer("hello llm wait")


async def test_a_voice_that_dies_fails_the_response(gateway: FaultyGateway, caller: Caller) -> None:
    await caller.say("tts wait")
    await caller.response_is_written()
    await gateway.desk.until("tts wait")
    gateway.kill("tts")
    await caller.check_failure()
    await caller.is_answered("hello again")

    for phrase in ("long again", "tts half"):
        await caller.say(phrase)
        await caller.response_sounds()
        if phrase == "tts half":
            await gateway.desk.until(phrase)
        gateway.kill("tts")
        await caller.check_failure()
        await caller.is_answered("hello again")


async def test_without_its_detector_a_call_goes_on_by_hand_until_there_is_another(
    gateway: FaultyGateway, caller: Caller
) -> None:
    await caller.is_answered("hello again")
    await lose(gateway, "vad")
    await caller.beep("again hello")
    await caller.send(CommitAudio(), CreateResponse())
    await caller.check_answer("again hello")
    await caller.hush(2400)
    await caller.is_answered("hello again")

    await caller.beep("again hello")
    await caller.is_noticed()
    await lose(gateway, "vad")
    await caller.beep("again")
    turns = len(caller.of(AudioCommitted))
    await caller.hush_until(lambda: len(caller.of(AudioCommitted)) > turns)
    await caller.check_answer("again hello again")


async def test_workers_that_die_together_fail_one_response_once(
    gateway: FaultyGateway, caller: Caller
) -> None:
    for phrase, stages in (
        ("llm half", ("llm", "tts")),
        ("tts half", ("tts", "llm", "asr")),
        ("llm wait", ("asr", "llm", "tts", "vad")),
    ):
        await caller.say(phrase)
        await caller.response_begins()
        await gateway.desk.until(phrase)
        gateway.kill(*stages)
        await caller.check_failure()
        for stage in stages:
            await gateway.works(stage)
        await caller.hush(2400)
        await caller.is_answered("hello again")


async def test_calls_beside_it_lose_nothing_but_their_work_on_that_worker(
    gateway: FaultyGateway, caller: Caller
) -> None:
    async with caller_of(gateway.url) as neighbour:
        await neighbour.say("long hello")
        await neighbour.response_sounds()
        await caller.say("llm half")
        await caller.response_sounds()
        gateway.kill("llm")
        await caller.check_failure()
        await caller.say("asr wait")
        await gateway.desk.until("asr wait")
        await caller.response_begins()
        gateway.kill("asr")
        await caller.check_failure()
        await neighbour.check_answer("long hello")

        await neighbour.beep("hello")
        await caller.say("tts half")
        await gateway.desk.until("tts half")
        gateway.kill("tts")
        await caller.check_failure()
        await neighbour.beep("again")
        await neighbour.hush(800)
        await neighbour.check_answer("hello again")
        await caller.is_answered("again hello")


async def test_while_a_worker_cannot_be_started_responses_fail_at_once(
    gateway: FaultyGateway, caller: Caller
) -> None:
    for stage in ("asr", "llm", "tts"):
        gateway.uninstall(stage)
        gateway.kill(stage)
        for _ in range(2):
            await caller.say("hello again")
            await caller.check_failure()
        gateway.install(stage)
        await gateway.works(stage)
        await caller.is_answered("again hello")


# A runner does wrong


async def test_a_runner_that_raises_fails_the_response_and_one_that_crashes_is_replaced_too(
    gateway: FaultyGateway,
) -> None:
    for stage in ("asr", "llm", "tts"):
        # A call each: turns whose answers nobody heard stand in the prompt of the next one, and the
        # voice is given long sentences in parts, which would tear an order to it apart.
        async with caller_of(gateway.url) as caller:
            await caller.say(f"{stage} raise")
            await caller.check_failure("stage_failed")
            await caller.is_answered("hello again")
        assert gateway.stats(stage).restarts == 0
        async with caller_of(gateway.url) as caller:
            await caller.say(f"{stage} crash")
            await caller.check_failure("replica_lost")
            await caller.is_answered("hello again")
        assert gateway.stats(stage).restarts == 1


@pytest.mark.parametrize("gateway", [Patience(2.0, 0.3)], indirect=True)
async def test_a_runner_that_hangs_fails_the_response_in_time_and_is_killed_after_its_grace(
    gateway: FaultyGateway,
) -> None:
    stages = ("tts", "llm", "asr")
    pids = [gateway.pid(stage) for stage in stages]
    async with (
        caller_of(gateway.url) as first,
        caller_of(gateway.url) as second,
        caller_of(gateway.url) as third,
    ):
        callers = (first, second, third)
        for caller, stage in zip(callers, stages, strict=True):
            await caller.say(f"{stage} hang")
            await gateway.desk.until(f"{stage} hang")
        for caller in callers:
            await caller.check_failure("stage_timeout")
        for stage in stages:
            await gateway.works(stage)
        assert not set(pids) & {gateway.pid(stage) for stage in stages}
        for caller in callers:
            await caller.is_answered("hello again")


@pytest.mark.parametrize("gateway", [Patience(30.0, 0.3, 0.5)], indirect=True)
async def test_a_detector_that_hangs_is_killed_and_the_next_turn_is_found(
    gateway: FaultyGateway, caller: Caller
) -> None:
    await caller.is_answered("hello again")
    gateway.kill("vad", sig=signal.SIGSTOP)
    await caller.hush(4000)
    await caller.hush_until(
        lambda: gateway.stats("vad").ready == 0 or gateway.stats("vad").restarts == 1
    )
    await gateway.works("vad")
    await caller.hush(2400)
    await caller.is_answered("again hello")


@pytest.mark.parametrize("gateway", [Patience(2.0, 10.0)], indirect=True)
async def test_what_comes_too_late_is_heard_by_nobody_and_its_worker_is_kept(
    gateway: FaultyGateway,
) -> None:
    stages = ("tts", "llm", "asr")
    async with (
        caller_of(gateway.url) as first,
        caller_of(gateway.url) as second,
        caller_of(gateway.url) as third,
    ):
        callers = (first, second, third)
        gateway.kill("tts", sig=signal.SIGSTOP)
        await first.say("hello again")
        await first.response_is_written()
        gateway.kill("llm", sig=signal.SIGSTOP)
        await second.say("hello again")
        await second.is_understood("hello again")
        gateway.kill("asr", sig=signal.SIGSTOP)
        await third.say("hello again")
        for caller in callers:
            await caller.check_failure("stage_timeout")
        gateway.kill(*stages, sig=signal.SIGCONT)
        for caller in callers:
            await caller.is_answered("again hello")
    assert [gateway.stats(stage).restarts for stage in stages] == [0, 0, 0]


async def test_answers_that_come_twice_or_in_a_wrong_order_end_once(
    gateway: FaultyGateway, caller: Caller
) -> None:
    for stage in ("asr", "llm", "tts"):
        for kind in ("twice", "backwards"):
            await caller.say(f"{stage} {kind}")
            assert (await caller.response()).status == "completed"
            await caller.is_answered("hello again")


@pytest.mark.parametrize(
    ("stage", "status"), [("asr", "failed"), ("llm", "completed"), ("tts", "failed")]
)
async def test_an_answer_whose_model_breaks_off_ends_once(
    gateway: FaultyGateway, caller: Caller, stage: str, status: str
) -> None:
    await caller.say(f"{stage} short")
    assert (await caller.response()).status == status
    await caller.is_answered("hello again")
