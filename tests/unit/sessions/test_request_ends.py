from __future__ import annotations

import pytest

from duologue.duplex_plugins.contract import RequestEnded, RequestFailed
from duologue.protocol.commands import CreateResponse
from tests.fakes.call import FakeCall
from tests.fakes.engine import FakeEngine
from tests.fakes.plugin import STAGE, FakePlugin


@pytest.mark.parametrize(("fails", "told"), [(False, RequestEnded), (True, RequestFailed)])
def test_the_model_hears_of_its_requests_end_once(
    fails: bool, told: type[RequestEnded] | type[RequestFailed]
) -> None:
    plugin = FakePlugin()
    call = FakeCall(plugin, FakeEngine(pipelines=(STAGE,)))
    call.send(CreateResponse())
    (stage,) = call.engine.of(STAGE)
    if fails:
        call.engine.fail(stage.request.id)
    else:
        call.engine.complete(stage.request.id)
    assert len(plugin.of(told)) == 1
    assert len(plugin.of(RequestEnded)) + len(plugin.of(RequestFailed)) == 1
