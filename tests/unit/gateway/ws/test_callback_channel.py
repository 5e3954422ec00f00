from __future__ import annotations

from duologue.gateway.ws import callback_channel
from tests.fakes.clock import FakeClock
from tests.unit.gateway.raw_websocket import TEXT, Frame, connected
from tests.unit.gateway.ws.ending_contract import EndingContract
from tests.unit.gateway.ws.message_contract import MessageContract
from tests.unit.gateway.ws.wire import serving


class TestCallbackChannel(MessageContract, EndingContract):
    accept = staticmethod(callback_channel.accept)

    async def test_who_is_not_read_is_not_silent(self) -> None:
        clock = FakeClock()
        async with (
            serving(self.accept, clock=clock, heartbeat_s=20) as server,
            connected(server.port) as peer,
        ):
            await peer.upgrade()
            line = await server.line()
            line.channel.hold(True)
            for _ in range(5):
                clock.advance(20.1)
            line.channel.hold(False)
            clock.advance(19.9)
            peer.send(TEXT, b"here")
            assert await line.received(1) == [b"here"]
            line.channel.send(b"no ping came before")
            assert await peer.frame() == Frame(TEXT, b"no ping came before")


def test_the_reader_works_with_this_aiohttp() -> None:
    assert callback_channel.callback_reader_works()
