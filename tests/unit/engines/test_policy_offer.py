from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from duologue.engines.pipeline import load_pipelines
from duologue.engines.policy_offer import PolicyOffer
from tests.fakes.tiny_policy import OFFER, write_pipeline


def test_a_pipeline_says_what_its_policy_takes(tmp_path: Path) -> None:
    pipelines = load_pipelines([write_pipeline(tmp_path)])
    assert pipelines["tiny_policy"].policy == OFFER


@pytest.mark.parametrize("raw", [{}, {"cameras": []}, {"cameras": ["a"], "arms": 2}])
def test_an_offer_without_cameras_or_with_something_unknown_is_refused(
    raw: dict[str, object],
) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(raw, PolicyOffer)
