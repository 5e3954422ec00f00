from __future__ import annotations

import pytest

from duologue.core.clock import SystemClock
from duologue.core.errors import EngineError
from duologue.core.ids import id_maker
from duologue.engines.media_payloads import DrawImage, ImageData, StepsDone
from duologue.engines.payloads import Payload
from duologue.engines.ports import Ended, Outcome, Output, Request, Subscriber
from duologue.gateway.media.drawing import drawn
from duologue.gateway.route_requests import RouteRequests
from tests.fakes.engine import FakeEngine

ASK = DrawImage("a cat", 64, 48, 4, 3.5, 7)
IMAGE = ImageData(b"png", "png", 64, 48)
VIEW = ImageData(b"view", "png", 64, 48, 0)


class Answering(FakeEngine):
    """Gives every request the same outputs at once."""

    def __init__(self, *payloads: Payload) -> None:
        super().__init__(pipelines=("ink",))
        self.payloads = payloads

    def submit(self, request: Request, subscriber: Subscriber) -> None:
        super().submit(request, subscriber)
        for payload in self.payloads:
            subscriber.on_engine_event(Output(request.id, request.fence, payload))
        subscriber.on_engine_event(Ended(request.id, request.fence, Outcome.COMPLETED))


def client(*payloads: Payload) -> RouteRequests:
    return RouteRequests(Answering(*payloads), SystemClock(), id_maker(), 10)


async def test_all_are_asked_for_at_once_and_views_are_left_out() -> None:
    async with drawn(client(StepsDone(1, 4), VIEW, IMAGE), "ink", [ASK, ASK]) as drawings:
        assert await drawings.images() == [IMAGE, IMAGE]


async def test_views_come_before_the_image() -> None:
    async with drawn(client(VIEW, IMAGE), "ink", [ASK]) as drawings:
        assert [image async for image in drawings.views()] == [VIEW, IMAGE]


async def test_a_pipeline_that_draws_nothing_has_failed() -> None:
    with pytest.raises(EngineError, match="no image"):
        async with drawn(client(StepsDone(4, 4)), "ink", [ASK]) as drawings:
            await drawings.images()
