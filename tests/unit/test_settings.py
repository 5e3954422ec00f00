from __future__ import annotations

import re
from pathlib import Path

import pytest

from duologue.config import load
from duologue.config.names import settings_of
from duologue.config.reference import settings_page
from duologue.core.errors import ConfigError
from duologue.settings import Settings

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").rglob("duologue*.yaml"))


def test_the_server_starts_without_a_single_setting() -> None:
    assert load(Settings, environ={}).settings == Settings()


def test_the_reference_page_is_up_to_date() -> None:
    page = (ROOT / "docs/settings.md").read_text(encoding="utf-8")
    assert page == settings_page(Settings) + "\n", (
        "run: duologue config reference > docs/settings.md"
    )


def test_every_setting_says_what_it_does() -> None:
    assert re.findall(r"^\| (`\S+`) .*\|  \|$", settings_page(Settings), re.MULTILINE) == []


def test_durations_and_sizes_say_their_unit() -> None:
    unclear = re.compile(r"(timeout|interval|delay|wait|duration|backoff|grace)(_max)?$")
    assert [key for key in settings_of(Settings) if unclear.search(key)] == []


def test_the_examples_are_accepted() -> None:
    assert EXAMPLES
    for path in EXAMPLES:
        load(Settings, environ={}, config_file=path)


def test_a_rule_of_a_section_is_told_in_its_own_words() -> None:
    with pytest.raises(ConfigError, match=r"\): certificate and key belong together"):
        load(Settings, environ={"DUOLOGUE_GATEWAY__TLS__CERTIFICATE": "x.pem"})
