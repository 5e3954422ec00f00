from __future__ import annotations

from typing import get_args

import pytest

from duologue.protocol.events import Event

PLACE = {"response_id", "item_id", "output_index", "content_index"}


@pytest.mark.parametrize(
    "member", [m for m in get_args(Event) if "output_" in m.__struct_config__.tag]
)
def test_whatever_belongs_to_a_part_says_to_which(member: type) -> None:
    tag = member.__struct_config__.tag  # type: ignore[attr-defined]
    fields = set(member.__struct_fields__)  # type: ignore[attr-defined]
    if tag.startswith(("response.output_audio", "response.output_text")):
        assert fields >= PLACE
        assert tag.endswith("done") or "delta" in fields
    else:
        assert "response_id" in fields
