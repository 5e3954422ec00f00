from __future__ import annotations

import pytest

from duologue.core.errors import CapacityError
from duologue.sessions.places import Places


class House:
    """Two models on one pipeline that holds as many as it says, and one that needs none."""

    def __init__(self, most: int = 10, models: tuple[str, ...] = ("a", "b", "talks")) -> None:
        self.slots = 3
        resident = {"a": "duplex", "b": "duplex", "talks": ""}
        known = {name: resident[name] for name in models}
        self.places = Places(most, known, lambda _pipeline: self.slots)


def test_sessions_of_all_models_on_a_pipeline_share_its_places() -> None:
    house = House()
    places = house.places
    for number, model in enumerate("aba"):
        places.check(model)
        places.take(str(number), model)
    with pytest.raises(CapacityError, match="3 sessions of b are open"):
        places.check("b")
    places.check("talks")
    places.leave("1")
    places.check("b")


def test_what_the_workers_find_out_counts_from_then_on() -> None:
    house = House()
    house.places.take("1", "a")
    house.slots = 1
    with pytest.raises(CapacityError, match="hold no more in time"):
        house.places.check("a")


def test_the_whole_house_holds_as_many_as_was_set_where_a_model_needs_no_place() -> None:
    assert House(most=10).places.most == 10
    assert House(models=("talks",)).places.most == 10
    assert Places(10, {}, lambda _pipeline: 0).most == 10


def test_the_whole_house_holds_as_many_as_its_pipelines_where_every_model_needs_a_place() -> None:
    places = House(models=("a", "b")).places
    assert places.most == 3
    places.keep()
    places.keep()
    places.take("1", "a")
    assert places.fill == 1.0
    with pytest.raises(CapacityError, match="3 sessions are open, the limit is 3"):
        places.check()
    places.give_up()
    places.check()


def test_a_house_whose_workers_hold_nobody_is_full() -> None:
    house = House(models=("a",))
    house.slots = 0
    assert house.places.fill == 0.0
    with pytest.raises(CapacityError):
        house.places.keep()
