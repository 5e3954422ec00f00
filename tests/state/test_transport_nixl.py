"""The model of ``test_transport``, over NIXL; few examples, since an agent takes a second."""

from __future__ import annotations

import pytest
from hypothesis import settings

from tests.unit.engines.transport.test_nixl import OverNixl
from tests.unit.engines.transport.transport_contract import TransportModel

pytestmark = pytest.mark.timeout(600)


class OverNixlModel(TransportModel):
    make = OverNixl


TestOverNixl = OverNixlModel.TestCase
TestOverNixl.settings = settings(
    max_examples=max(1, settings().max_examples // 50), stateful_step_count=25
)
