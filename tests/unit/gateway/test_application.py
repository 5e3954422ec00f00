from __future__ import annotations

import pytest

from duologue.gateway.ws.form import PATHS, VIDEO_CHAT_PATH
from tests.unit.gateway.raw_websocket import connected
from tests.unit.gateway.small_server import small_server


# A call with a camera waits for a description, see tests/cases/test_video_chat.py.
@pytest.mark.parametrize("path", sorted({*PATHS} - {VIDEO_CHAT_PATH}))
async def test_a_call_may_come_by_any_of_its_paths(path: str) -> None:
    async with small_server() as server, connected(server.port) as peer:
        await peer.upgrade(path)
        assert (await peer.event())["type"] == "session.created"


@pytest.mark.parametrize(
    "path", ["/v1/chat/completions", "/nothing", "/web_demo/main.js", "/../pyproject.toml", "//"]
)
async def test_an_unknown_path_is_an_error_in_json(path: str) -> None:
    async with small_server() as server, connected(server.port) as peer:
        answer = await peer.ask(path)
        assert answer.status == 404
        error = answer.json["error"]
        assert (error["type"], error["code"]) == ("invalid_request_error", "unknown_url")
        assert path in error["message"]


async def test_a_method_that_a_path_has_not_is_an_error_in_json() -> None:
    async with small_server() as server, connected(server.port) as peer:
        answer = await peer.ask("/v1/models", method="DELETE")
        assert answer.status == 405
        assert answer.headers["Allow"] == "GET,HEAD"
        assert answer.json["error"]["code"] == "method_not_supported"
