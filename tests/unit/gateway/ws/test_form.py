from __future__ import annotations

from collections.abc import Sequence

import pytest
from multidict import CIMultiDict

from duologue.core.errors import ProtocolError
from duologue.gateway.ws.form import VIDEO_CHAT_PATH, ConnectionForm, connection_form
from duologue.protocol.beta_codec import BETA_JSON
from duologue.protocol.duplex.json_codec import DUPLEX_JSON
from duologue.protocol.errors import ErrorCode
from duologue.protocol.json_codec import REALTIME_JSON


def form(
    query: str = "",
    *offered: str,
    path: str = "/v1/realtime",
    beta_header: str | None = None,
    allowed: Sequence[str] = ("beta", "duplex"),
) -> ConnectionForm:
    headers = CIMultiDict({} if beta_header is None else {"OpenAI-Beta": beta_header})
    return connection_form(path, query, headers, offered, allowed)


def test_a_stock_client_gets_the_plain_dialect_and_its_session_at_once() -> None:
    assert form("model=gpt-realtime") == ConnectionForm(
        dialect=REALTIME_JSON,
        protocol=None,
        model="gpt-realtime",
        kind="realtime",
        autostart=True,
    )


@pytest.mark.parametrize(
    ("query", "model", "kind"),
    [
        ("", None, "realtime"),
        ("model=", None, "realtime"),
        ("model=a&model=b", "a", "realtime"),
        ("model=a%20b", "a b", "realtime"),
        ("duplex=1?model=x", "x", "realtime"),
        ("intent=transcription", None, "transcription"),
        ("intent=transcription?model=x", "x", "transcription"),
        ("intent=other", None, "realtime"),
        ("&&=;%zz", None, "realtime"),
    ],
)
def test_the_query_says_the_model_and_what_the_session_is_for(
    query: str, model: str | None, kind: str
) -> None:
    found = form(query)
    assert (found.model, found.kind) == (model, kind)


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/v1/duplex", "model=m"),
        ("/v1/realtime", "duplex=1"),
        ("/v1/realtime", "autostart=0"),
        ("/v1/realtime", "duplex=0&autostart=0"),
        ("/v1/duplex", "autostart=1"),
    ],
)
def test_the_address_of_the_extensions_alone_does_not_ask_for_them(path: str, query: str) -> None:
    found = form(query, path=path)
    assert (found.dialect, found.autostart) == (REALTIME_JSON, True)


def test_the_address_for_cameras_asks_for_the_duplex_dialect() -> None:
    found = form("model=m", path=VIDEO_CHAT_PATH)
    assert (found.dialect, found.autostart, found.model) == (DUPLEX_JSON, False, "m")
    assert form("resume=1", path=VIDEO_CHAT_PATH).resumes
    with pytest.raises(ProtocolError):
        form(path=VIDEO_CHAT_PATH, allowed=())


@pytest.mark.parametrize(
    ("offered", "selected"),
    [
        ([], None),
        (["realtime"], "realtime"),
        (["openai-insecure-api-key.k", "realtime"], "realtime"),
        (["openai-agents-sdk.0.20.0", "openai-insecure-api-key.k"], None),
        (["realtime", "realtime.msgpack"], "realtime"),
        (["REALTIME"], None),
    ],
)
def test_the_first_subprotocol_that_we_speak_is_selected(
    offered: list[str], selected: str | None
) -> None:
    assert form("", *offered).protocol == selected


@pytest.mark.parametrize(
    ("refused", "hint"),
    [
        (lambda: form(beta_header="realtime=v1", allowed=()), "OpenAI-Beta"),
        (lambda: form("", "realtime", "openai-beta.realtime-v1", allowed=()), "openai-beta"),
        (lambda: form("autostart=0", path="/v1/duplex", allowed=()), "autostart"),
        (lambda: form("duplex=1&autostart=0", beta_header="realtime=v1"), "the one or the other"),
        (lambda: form("", "realtime.msgpack", beta_header="realtime=v1"), "OpenAI-Beta"),
    ],
)
def test_what_is_not_spoken_here_is_refused_with_the_way_out(refused, hint: str) -> None:
    with pytest.raises(ProtocolError, match=hint) as caught:
        refused()
    assert caught.value.code == ErrorCode.UNSUPPORTED


@pytest.mark.parametrize(
    ("path", "header", "offered"),
    [
        ("/v1/realtime", "realtime=v1", ()),
        ("/v1/realtime", "assistants=v2, realtime=v1", ()),
        ("/v1/duplex", "realtime=v1", ("realtime",)),
        ("/realtime", None, ("realtime", "openai-beta.realtime-v1")),
        ("/openai/realtime", None, ()),
    ],
)
def test_the_beta_is_asked_for_by_header_subprotocol_or_address(
    path: str, header: str | None, offered: tuple[str, ...]
) -> None:
    found = form("deployment=d&api-version=v", *offered, path=path, beta_header=header)
    assert (found.dialect, found.model) == (BETA_JSON, "d")
    assert found.protocol in (None, "realtime")


@pytest.mark.parametrize("header", ["assistants=v2", "realtime=v2", ""])
def test_other_betas_are_no_business_of_ours(header: str) -> None:
    assert form(beta_header=header).dialect is REALTIME_JSON
