from __future__ import annotations

from duologue.gateway.ws import loop_channel
from tests.unit.gateway.ws.ending_contract import EndingContract
from tests.unit.gateway.ws.message_contract import MessageContract


class TestLoopChannel(MessageContract, EndingContract):
    accept = staticmethod(loop_channel.accept)
