from __future__ import annotations

from duologue.gateway.ws import callback_channel
from tests.unit.gateway.ws.ending_contract import EndingContract
from tests.unit.gateway.ws.message_contract import MessageContract


class TestCallbackChannel(MessageContract, EndingContract):
    accept = staticmethod(callback_channel.accept)


def test_the_reader_works_with_this_aiohttp() -> None:
    assert callback_channel.callback_reader_works()
