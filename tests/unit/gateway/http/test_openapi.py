from __future__ import annotations

from typing import Annotated, Any

import msgspec

from duologue.gateway.http.openapi import OpenApiRoutes, document
from duologue.gateway.http.routes import EVENTS, FORM, JSON, Content, Parameter
from tests.unit.gateway.http.http_bench import nothing, route, served


class Order(msgspec.Struct):
    """What is wanted."""

    dish: Annotated[str, msgspec.Meta(max_length=9)]
    count: int = 1


class Receipt(msgspec.Struct):
    total: float


COOK = route(
    nothing,
    path="/dishes/{dish}",
    operation="cook",
    summary="Cook a dish.",
    body=(Content(JSON, Order, ({"dish": "soup"},)), Content(FORM, Order, files=("photo",))),
    status=201,
    answers=(Content(JSON, Receipt | Order), Content(EVENTS, Receipt), Content("audio/mpeg")),
    parameters=(Parameter("dish", "Which.", in_path=True), Parameter("hot", "How.")),
    refusals=(400, 504),
)
LOOK = route(
    nothing, method="GET", is_work=False, needs_key=False, answers=(Content("text/plain"),)
)


def operation(path: str, method: str) -> dict[str, Any]:
    found: dict[str, Any] = document([COOK, LOOK])["paths"][path][method]
    return found


def test_an_operation_says_what_it_takes() -> None:
    cook = operation("/dishes/{dish}", "post")
    assert (cook["operationId"], cook["summary"]) == ("cook", "Cook a dish.")
    bodies = cook["requestBody"]["content"]
    reference = {"$ref": "#/components/schemas/Order"}
    assert bodies[JSON] == {
        "schema": reference,
        "examples": {"example1": {"value": {"dish": "soup"}}},
    }
    first, files = bodies[FORM]["schema"]["allOf"]
    assert first == reference
    assert files["required"] == ["photo"]
    assert [(each["name"], each["in"], each["required"]) for each in cook["parameters"]] == [
        ("dish", "path", True),
        ("hot", "query", False),
    ]


def test_an_operation_says_what_it_gives() -> None:
    responses = operation("/dishes/{dish}", "post")["responses"]
    assert list(responses) == ["201", "400", "401", "403", "429", "503", "504", "default"]
    assert list(responses["201"]["content"]) == [JSON, EVENTS, "audio/mpeg"]
    alternatives = responses["201"]["content"][JSON]["schema"]["anyOf"]
    assert [each["$ref"].rpartition("/")[2] for each in alternatives] == ["Receipt", "Order"]
    event = responses["201"]["content"][EVENTS]["schema"]["properties"]["data"]
    assert event["anyOf"][0]["contentSchema"] == {"$ref": "#/components/schemas/Receipt"}
    error = responses["400"]["content"][JSON]["schema"]
    assert error == {"$ref": "#/components/schemas/ErrorPage"}
    look = operation("/try", "get")
    assert list(look["responses"]) == ["200", "default"]
    assert look["security"] == []
    assert "requestBody" not in look


def test_classes_are_described_once() -> None:
    schemas = document([COOK])["components"]["schemas"]
    assert schemas["Order"]["properties"]["dish"] == {"type": "string", "maxLength": 9}
    assert schemas["Order"]["required"] == ["dish"]
    assert {"ErrorPage", "ErrorBody", "Receipt"} <= schemas.keys()


async def test_the_document_is_served_to_everybody_and_names_itself() -> None:
    (own,) = OpenApiRoutes([COOK]).routes()
    how = {"method": "GET", "path": own.path, "is_work": False, "needs_key": False}
    async with (
        served(own.handle, api_keys=("sesame",), **how) as client,
        client.get("/openapi.json") as answer,
    ):
        assert answer.content_type == JSON
        page = await answer.json()
    assert page["openapi"] == "3.1.0"
    assert list(page["paths"]) == ["/dishes/{dish}", "/openapi.json"]
