from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from duologue.artifacts.settings import ArtifactSettings, SourceKind, default_cache_dir
from duologue.core.errors import ConfigError


def test_the_variable_moves_the_cache() -> None:
    environ = {"DUOLOGUE_CACHE": "/big/disk", "XDG_CACHE_HOME": "/xdg"}
    assert default_cache_dir(environ) == Path("/big/disk")


def test_without_the_variable_the_cache_follows_xdg() -> None:
    assert default_cache_dir({"XDG_CACHE_HOME": "/xdg"}) == Path("/xdg/duologue")


@pytest.mark.parametrize("environ", [{}, {"XDG_CACHE_HOME": ""}, {"XDG_CACHE_HOME": "relative"}])
def test_otherwise_the_cache_is_in_the_home(environ: dict[str, str]) -> None:
    assert default_cache_dir(environ) == Path.home() / ".cache" / "duologue"


def test_a_home_sign_in_the_variable_is_resolved() -> None:
    assert default_cache_dir({"DUOLOGUE_CACHE": "~/w"}) == Path.home() / "w"
    assert ArtifactSettings(cache_dir=Path("~/w")).cache_dir == Path.home() / "w"


def test_packages_are_asked_before_the_hub() -> None:
    assert ArtifactSettings().sources == (SourceKind.FOLDER, SourceKind.PACKAGE, SourceKind.HUB)


@pytest.mark.parametrize(
    "values",
    [
        {"hub_url": "ftp://hub"},
        {"hub_url": "file:///etc"},
        {"sources": []},
        {"sources": ["hub", "hub"]},
        {"sources": ["torrent"]},
        {"parallel_downloads": 0},
        {"timeout_s": 0},
        {"unknown": 1},
    ],
)
def test_what_makes_no_sense_is_refused(values: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ArtifactSettings.model_validate(values)


def test_a_trailing_slash_of_the_hub_does_not_matter() -> None:
    assert ArtifactSettings(hub_url="https://mirror/").hub_url == "https://mirror"


def test_the_home_of_nobody_is_no_cache() -> None:
    with pytest.raises(ConfigError, match="no home for ~nobody-of-this-name/w: name a folder in"):
        default_cache_dir({"DUOLOGUE_CACHE": "~nobody-of-this-name/w"})
    with pytest.raises(ValidationError, match="home directory"):
        ArtifactSettings(cache_dir=Path("~nobody-of-this-name/w"))
