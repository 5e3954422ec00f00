from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from duologue.core.errors import ConfigError, EngineError, StageTimeout
from duologue.engines.runners.http_stream import HttpPost, Upstream, read_api_key
from tests.fakes.http_server import Reply, serving
from tests.patience import PATIENCE_S


def upstream(url: str, key: str = "", silence_s: float = 10.0) -> Upstream:
    return Upstream(url, key, connect_timeout_s=5.0, silence_timeout_s=silence_s)


def test_the_answer_comes_as_it_is_sent() -> None:
    gone_on = threading.Event()

    def pieces() -> Iterator[bytes]:
        yield b"first"
        assert gone_on.wait(PATIENCE_S)
        yield b"second"

    with serving(lambda _: Reply(pieces=pieces())) as server:
        chunks = HttpPost(upstream(server.url), "/x", b"{}").chunks()
        assert next(chunks) == b"first"
        gone_on.set()
        assert list(chunks) == [b"second"]


def test_path_body_and_key_reach_the_server() -> None:
    with serving(lambda _: Reply()) as server:
        assert list(HttpPost(upstream(server.url, "secret"), "/x/y", b'{"a":1}').chunks()) == []
    (asked,) = server.asked
    assert asked.path == "/v1/x/y"
    assert asked.body == b'{"a":1}'
    assert asked.headers["authorization"] == "Bearer secret"
    assert asked.headers["content-type"] == "application/json"


def test_without_a_key_none_is_sent() -> None:
    with serving(lambda _: Reply()) as server:
        list(HttpPost(upstream(server.url), "/x", b"").chunks())
    assert "authorization" not in server.asked[0].headers


def test_lines_may_come_in_any_pieces() -> None:
    with serving(lambda _: Reply(pieces=[b"a\r", b"\nb", b"b\n\nc"])) as server:
        assert list(HttpPost(upstream(server.url), "/x", b"").lines()) == [b"a", b"bb", b"", b"c"]


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (401, "upstream_denied"),
        (404, "upstream_not_found"),
        (429, "upstream_busy"),
        (500, "upstream_failed"),
        (503, "upstream_busy"),
    ],
)
def test_a_refusal_names_address_and_status_and_quotes_the_server(status: int, code: str) -> None:
    with (
        serving(lambda _: Reply(status, [b"no such model"])) as server,
        pytest.raises(EngineError, match=rf"POST \S*/x with {status}$") as caught,
    ):
        list(HttpPost(upstream(server.url), "/x", b"").chunks())
    assert caught.value.code == code
    assert caught.value.quote == "no such model"  # it may repeat what people said


def test_a_server_that_is_not_there_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        with pytest.raises(
            EngineError, match=r"^127\.0\.0\.1:\d+ cannot be reached: Connection refused"
        ) as caught:
            list(HttpPost(upstream(url), "/x", b"").chunks())
    assert caught.value.code == "upstream_unreachable"


def test_a_silent_server_times_out() -> None:
    done = threading.Event()

    def pieces() -> Iterator[bytes]:
        yield b"a"
        done.wait(PATIENCE_S)
        yield b"b"

    with serving(lambda _: Reply(pieces=pieces())) as server:
        chunks = HttpPost(upstream(server.url, silence_s=0.05), "/x", b"").chunks()
        assert next(chunks) == b"a"
        with pytest.raises(StageTimeout):
            next(chunks)
        done.set()


def test_an_abort_ends_the_answer_and_the_server_notices() -> None:
    done = threading.Event()

    def pieces() -> Iterator[bytes]:
        while not done.is_set():
            yield b"x" * 60_000

    with serving(lambda _: Reply(pieces=pieces())) as server:
        post = HttpPost(upstream(server.url), "/x", b"")
        chunks = post.chunks()
        next(chunks)
        post.abort()
        for _ in chunks:
            pass
        assert server.hung_up.wait(PATIENCE_S)
        done.set()


def test_an_abort_before_the_request_asks_nothing() -> None:
    with serving(lambda _: Reply(pieces=[b"x"])) as server:
        post = HttpPost(upstream(server.url), "/x", b"")
        post.abort()
        assert list(post.chunks()) == []
    assert server.asked == []


@pytest.mark.parametrize("url", ["", "example.com/v1", "ftp://example.com", "http://"])
def test_a_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="base_url"):
        upstream(url).check()


def test_the_key_is_never_shown() -> None:
    assert "secret" not in repr(upstream("http://localhost/v1", "secret"))


def test_a_key_is_read_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text("secret\n")
    assert read_api_key(str(path)) == "secret"
    assert read_api_key("") == ""
    with pytest.raises(ConfigError, match="missing"):
        read_api_key(str(tmp_path / "missing"))
