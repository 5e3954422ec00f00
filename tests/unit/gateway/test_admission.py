from __future__ import annotations

import pytest

from duologue.core.errors import CapacityError
from duologue.gateway.admission import Admission, Workers
from duologue.protocol.errors import ErrorCode


class FakeManager:
    def __init__(self) -> None:
        self.is_full = False
        self.accepting = True

    def check_loaded(self) -> None:
        pass

    def check_room(self) -> None:
        if self.is_full:
            raise CapacityError("2 sessions are open, the limit is 2", retry_after_s=5.0)


class Scene:
    def __init__(self, *, is_loaded: bool = True) -> None:
        self.manager = FakeManager()
        self.workers = Workers(ready=2, total=2, every_stage=True)
        self.admission = Admission(self.manager, lambda: self.workers)
        if is_loaded:
            self.admission.open()


def refusal(check) -> str:
    with pytest.raises(CapacityError) as caught:
        check()
    assert caught.value.retry_after_s > 0
    return caught.value.code


def test_calls_come_in_where_there_is_room() -> None:
    scene = Scene()
    scene.admission.check_call()
    scene.admission.check_ready()


def test_nobody_comes_in_before_all_models_are_loaded() -> None:
    scene = Scene(is_loaded=False)
    assert refusal(scene.admission.check_call) == ErrorCode.NOT_READY
    assert refusal(scene.admission.check_ready) == ErrorCode.NOT_READY
    scene.admission.open()
    scene.admission.check_call()


def test_a_full_server_is_not_ready_either() -> None:
    scene = Scene()
    scene.manager.is_full = True
    assert refusal(scene.admission.check_call) == ErrorCode.SERVER_FULL
    assert refusal(scene.admission.check_ready) == ErrorCode.SERVER_FULL


def test_plain_requests_need_the_models_and_no_room_for_a_call() -> None:
    scene = Scene(is_loaded=False)
    assert refusal(scene.admission.check_request) == ErrorCode.NOT_READY
    scene.admission.open()
    scene.manager.is_full = True
    scene.admission.check_request()
    scene.manager.accepting = False
    assert refusal(scene.admission.check_request) == ErrorCode.SHUTTING_DOWN


def test_a_worker_that_is_being_restarted_sends_new_calls_elsewhere_and_refuses_none() -> None:
    scene = Scene()
    scene.workers = Workers(ready=1, total=2, every_stage=False)
    scene.admission.check_call()
    assert refusal(scene.admission.check_ready) == ErrorCode.NOT_READY
    assert scene.admission.workers == scene.workers


def test_one_of_several_workers_of_a_stage_may_be_missing() -> None:
    scene = Scene()
    scene.workers = Workers(ready=1, total=2, every_stage=True)
    scene.admission.check_ready()
