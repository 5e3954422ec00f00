"""Every transport of payloads, whatever is lost, late, doubled or dead: exact bytes or an error."""

from __future__ import annotations

from hypothesis import settings

from tests.unit.engines.transport.test_object_store import InProcess
from tests.unit.engines.transport.test_slab import OnOneHost
from tests.unit.engines.transport.transport_contract import TransportModel

SOME = settings(max_examples=max(1, settings().max_examples // 4))


class InProcessModel(TransportModel):
    make = InProcess


class OnOneHostModel(TransportModel):
    make = OnOneHost


TestInProcess = InProcessModel.TestCase
TestInProcess.settings = SOME
TestOnOneHost = OnOneHostModel.TestCase
TestOnOneHost.settings = SOME
