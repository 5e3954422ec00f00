from __future__ import annotations

import pytest

from duologue.core.errors import ProtocolError
from duologue.engines.media_offer import MediaOffer
from duologue.gateway.media.offers import MediaModels

MODELS = MediaModels(
    {
        "film": MediaOffer(serves=("videos",)),
        "ink": MediaOffer(serves=("images",)),
        "oil": MediaOffer(serves=("images", "image_edits")),
    },
    ("gpt-image-*",),
)


@pytest.mark.parametrize("name", [None, "gpt-image-1"])
def test_the_first_that_can_is_the_default(name: str | None) -> None:
    assert MODELS.find(name, "images").name == "ink"
    assert MODELS.find(name, "image_edits").name == "oil"


def test_a_pipeline_is_a_model_of_its_name() -> None:
    assert MODELS.find("oil", "images").name == "oil"


@pytest.mark.parametrize(
    ("models", "name", "code", "says"),
    [
        (MODELS, "wax", "model_not_found", "there are: ink, oil"),
        (MODELS, "film", "unsupported", "film cannot draw"),
        (MediaModels({}), None, "unsupported", "engine.pipelines"),
    ],
)
def test_others_are_told_what_there_is(
    models: MediaModels, name: str | None, code: str, says: str
) -> None:
    with pytest.raises(ProtocolError, match=says) as refused:
        models.find(name, "images")
    assert (refused.value.code, refused.value.param) == (code, "model")
