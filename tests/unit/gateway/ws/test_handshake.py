from __future__ import annotations

import pytest
from multidict import CIMultiDict

from duologue.core.errors import ClientError
from duologue.gateway.ws.handshake import answer, check_upgrade, offered_protocols
from tests.unit.gateway.raw_websocket import ACCEPT, UPGRADE


def with_headers(**changes: str) -> CIMultiDict[str]:
    return CIMultiDict(UPGRADE | {name.replace("_", "-"): text for name, text in changes.items()})


@pytest.mark.parametrize(
    "headers",
    [
        with_headers(),
        with_headers(Upgrade="WebSocket"),
        with_headers(Connection="keep-alive, Upgrade"),
    ],
)
def test_a_complete_handshake_is_accepted(headers: CIMultiDict[str]) -> None:
    check_upgrade(headers)
    assert answer(headers, None)["Sec-WebSocket-Accept"] == ACCEPT


@pytest.mark.parametrize(
    ("headers", "what"),
    [
        (CIMultiDict({}), "ws://"),
        (with_headers(Upgrade="h2c"), "ws://"),
        (with_headers(Connection="keep-alive"), "Connection: upgrade"),
        (with_headers(Sec_WebSocket_Version="8"), "'8', and must be 13"),
        (with_headers(Sec_WebSocket_Key="short"), "16 bytes"),
        (with_headers(Sec_WebSocket_Key="Zm91cg=="), "16 bytes"),
        (with_headers(Sec_WebSocket_Key="\udcff" * 24), "16 bytes"),
    ],
)
def test_what_is_missing_is_named(headers: CIMultiDict[str], what: str) -> None:
    with pytest.raises(ClientError, match=what):
        check_upgrade(headers)


def test_offers_may_stand_in_several_lines() -> None:
    headers = with_headers()
    headers.add("Sec-WebSocket-Protocol", "openai-insecure-api-key.k, other")
    headers.add("Sec-WebSocket-Protocol", "realtime")
    assert offered_protocols(headers) == ["openai-insecure-api-key.k", "other", "realtime"]


def test_what_is_selected_stands_in_the_answer_and_nothing_else() -> None:
    headers = with_headers(Sec_WebSocket_Protocol="realtime, other")
    assert answer(headers, "realtime")["Sec-WebSocket-Protocol"] == "realtime"
    assert "Sec-WebSocket-Protocol" not in answer(headers, None)
    assert "Sec-WebSocket-Extensions" not in answer(headers, None)
