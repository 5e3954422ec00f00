from __future__ import annotations

import msgspec
import pytest

from duologue.engines.media_offer import MediaOffer


def test_it_offers_what_it_serves() -> None:
    offer = msgspec.convert({"serves": ["images"], "steps": 4}, MediaOffer)
    assert offer.offers("images")
    assert not offer.offers("videos")


@pytest.mark.parametrize("raw", [{"serves": []}, {"serves": ["songs"]}, {"width": 64}])
def test_an_offer_of_nothing_or_of_something_unknown_is_refused(raw: dict[str, object]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(raw, MediaOffer)
