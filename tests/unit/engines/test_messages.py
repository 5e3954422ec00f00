from __future__ import annotations

from typing import get_args

import pytest

from duologue.engines.messages import FromWorker, Open, ToWorker


@pytest.mark.parametrize("union", [ToWorker, FromWorker])
def test_every_message_of_a_direction_has_a_tag_of_its_own(union: object) -> None:
    tags = [kind.__struct_config__.tag for kind in get_args(union)]
    assert len(set(tags)) == len(tags)


def test_a_job_is_whole_unless_it_says_that_more_follows() -> None:
    assert Open("a").input_ended
    assert Open("a").credit is None
