"""The model of ``test_transport``, over TCP."""

from __future__ import annotations

from hypothesis import settings

from tests.unit.engines.transport.test_zeromq import OverTcp
from tests.unit.engines.transport.transport_contract import TransportModel


class OverTcpModel(TransportModel):
    make = OverTcp


TestOverTcp = OverTcpModel.TestCase
TestOverTcp.settings = settings(max_examples=max(1, settings().max_examples // 8))
