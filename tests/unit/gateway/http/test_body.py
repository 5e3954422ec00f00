from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Literal

import aiohttp
import msgspec
import pytest
from aiohttp import web

from duologue.core.errors import ProtocolError
from duologue.gateway.errors import json_answer
from duologue.gateway.http.body import Form, form_message, read_form, read_json
from duologue.gateway.http.settings import HttpSettings
from tests.unit.gateway.http.http_bench import error_of, served

WIDE = 10**30
SMALL = HttpSettings(max_body_bytes=1024, body_timeout_s=5)
JSON = {"Content-Type": "application/json"}


class Order(msgspec.Struct):
    dish: str
    count: Annotated[int, msgspec.Meta(ge=1, le=9)] = 1
    size: Literal["small", "large"] = "small"
    extras: list[str] = []
    hot: bool = False
    table: int = 0


DECODER = msgspec.json.Decoder(Order)


async def take(request: web.Request) -> web.Response:
    return json_answer(await read_json(request, DECODER, SMALL))


async def take_form(request: web.Request) -> web.Response:
    form = await read_form(request, SMALL)
    order = form_message(form, Order, {"extras[]": "extras"})
    order.extras += [f"{file.name}:{len(file.data)}" for file in form.files.values()]
    return json_answer(order)


@pytest.mark.parametrize("headers", [JSON, {}, {"Content-Type": "text/plain"}])
async def test_json_is_read_and_unknown_keys_are_ignored(headers: dict[str, str]) -> None:
    async with served(take) as client:
        body = b'{"dish": "soup", "count": 2, "metadata": {"a": [1]}}'
        async with client.post("/try", data=body, headers=headers) as answer:
            order = await answer.json()
    assert (order["dish"], order["count"]) == ("soup", 2)


@pytest.mark.parametrize(
    ("body", "code", "param"),
    [
        (b"{", "invalid_json", None),
        (b"", "invalid_json", None),
        (b"\xff\xfe", "invalid_json", None),
        (b'{"dish": "\xff"}', "invalid_json", None),
        (b'{"x": ' + b"[" * 900, "invalid_json", None),
        (b"[]", "invalid_request", None),
        (b"{}", "missing_required_parameter", "dish"),
        (b'{"dish": 1}', "invalid_value", "dish"),
        (b'{"dish": "a", "count": 10}', "invalid_value", "count"),
        (b'{"dish": "a", "extras": ["b", 1]}', "invalid_value", "extras[1]"),
        (b'{"dish": "a", "x": [{"y": %d}]}' % WIDE, "invalid_value", "x[0].y"),
    ],
)
async def test_a_body_that_is_wrong_is_told_where(
    body: bytes, code: str, param: str | None
) -> None:
    async with served(take) as client, client.post("/try", data=body, headers=JSON) as answer:
        assert await error_of(answer) == (400, code, param)


async def test_a_body_of_another_type_is_told_which_one_is_read() -> None:
    async with served(take) as client, client.post("/try", data={"dish": "soup"}) as answer:
        assert await error_of(answer) == (415, "unsupported_media_type", None)
        assert "application/json" in await answer.text()
    async with served(take_form) as client, client.post("/try", json={}) as answer:
        assert await error_of(answer) == (415, "unsupported_media_type", None)


async def pieces(size: int) -> AsyncIterator[bytes]:
    for _ in range(size // 512):
        yield b" " * 512


@pytest.mark.parametrize("announced", [True, False])
async def test_a_body_over_the_limit_is_refused(announced: bool) -> None:
    data = b" " * 4096 if announced else pieces(4096)
    async with served(take) as client, client.post("/try", data=data, headers=JSON) as answer:
        assert await error_of(answer) == (413, "message_too_large", None)
        assert "1024" in await answer.text()


async def test_a_body_that_does_not_come_is_given_up() -> None:
    hurry = HttpSettings(body_timeout_s=0.01)

    async def take_quickly(request: web.Request) -> web.Response:
        return json_answer(await read_json(request, DECODER, hurry))

    async with served(take_quickly) as client:
        assert client._base_url is not None
        reader, writer = await asyncio.open_connection("127.0.0.1", client._base_url.port)
        writer.write(b"POST /try HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{")
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 408 ")
        assert b"client_too_slow" in await reader.readuntil(b"}}")
        writer.write(b"}")  # what still comes is read and forgotten
        writer.write_eof()
        assert await reader.read() == b""
        writer.close()


def form(**fields: str) -> aiohttp.FormData:
    data = aiohttp.FormData(quote_fields=False)
    for name, value in fields.items():
        data.add_field(name, value)
    return data


async def test_a_form_is_read_with_its_files_and_lists() -> None:
    data = form(dish="soup", count="3", hot="true", nonsense="1")
    data.add_field("extras[]", "salt")
    data.add_field("extras[]", "pepper")
    data.add_field("file", b"\x00\xff", filename="a.wav", content_type="audio/wav")
    async with served(take_form) as client, client.post("/try", data=data) as answer:
        assert answer.status == 200, await answer.text()
        order = await answer.json()
    assert order == {
        "dish": "soup",
        "count": 3,
        "size": "small",
        "extras": ["salt", "pepper", "a.wav:2"],
        "hot": True,
        "table": 0,
    }


async def test_a_form_whose_field_is_wrong_is_told_which() -> None:
    async with served(take_form) as client:
        async with client.post("/try", data=form(count="2", a="b")) as answer:
            # aiohttp's client sends a form without files in another encoding
            assert answer.status == 415
        data = form(count="ten", dish="soup")
        data.add_field("file", b"", filename="a")
        async with client.post("/try", data=data) as answer:
            assert await error_of(answer) == (400, "invalid_value", "count")


async def test_a_form_over_the_limit_is_refused() -> None:
    data = aiohttp.FormData()
    data.add_field("file", pieces(4096), filename="a")
    async with served(take_form) as client, client.post("/try", data=data) as answer:
        assert await error_of(answer) == (413, "message_too_large", None)


@pytest.mark.parametrize(
    ("boundary", "body"),
    [
        ("boundary=x", b"--x\r\nnonsense"),
        ("boundary=x", b"--x\r\n\r\nvalue\r\n--x--\r\n"),
        ("boundary=x", b"no boundary at all"),
        (
            "boundary=x",
            b'--x\r\nContent-Disposition: form-data; name="\xff"\r\n\r\n\xff\r\n--x--\r\n',
        ),
        ("boundary=x", b'--x\r\nContent-Disposition: form-data; n\xb8e="a"\r\n\r\nb\r\n--x--\r\n'),
        ("boundary=x", b'--x\r\nContent-Disposition: \xb8; name="a"\r\n\r\nb\r\n--x--\r\n'),
        ("boundary=x", b"--x\r\nContent-Disposition: form-data; name=a\r\n\r\n\xff\r\n--x--\r\n"),
        ("boundary=" + "y" * 100, b"--x"),
        ("", b"--x"),
        (
            "boundary=x",
            b"--x\r\nContent-Type: multipart/mixed; boundary=z\r\n\r\n--z--\r\n--x--\r\n",
        ),
        (
            "boundary=x",
            b"--x\r\nContent-Disposition: form-data; name=a\r\nContent-Transfer-Encoding: odd\r\n"
            b"\r\nvalue\r\n--x--\r\n",
        ),
    ],
)
async def test_a_malformed_form_is_the_clients_fault(boundary: str, body: bytes) -> None:
    headers = {"Content-Type": f"multipart/form-data; {boundary}"}
    async with served(take_form) as client, client.post("/try", data=body, headers=headers) as it:
        assert it.status == 400, await it.text()


def test_a_field_that_comes_twice_counts_once() -> None:
    order = form_message(Form(values={"dish": ["soup", "stew"]}), Order)
    assert order.dish == "stew"


def test_a_number_of_a_form_has_64_bits_at_most() -> None:
    order = form_message(Form(values={"dish": ["1" * 30], "table": [str(2**64 - 1)]}), Order)
    assert order.table == 2**64 - 1
    with pytest.raises(ProtocolError, match="64 bits") as refused:
        form_message(Form(values={"dish": ["soup"], "table": [str(WIDE)]}), Order)
    assert refused.value.param == "table"
