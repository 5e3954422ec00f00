from __future__ import annotations

from duologue.gateway.http.request_id import REQUEST_ID_HEADER
from tests.unit.gateway.raw_websocket import connected
from tests.unit.gateway.small_server import small_server


async def test_every_answer_has_a_number_of_its_own() -> None:
    numbers = []
    async with small_server() as server:
        for path in ("/v1/models", "/v1/models", "/nothing"):
            async with connected(server.port) as peer:
                numbers.append((await peer.ask(path)).headers[REQUEST_ID_HEADER])
    assert all(number.startswith("req_") for number in numbers)
    assert len(set(numbers)) == 3
