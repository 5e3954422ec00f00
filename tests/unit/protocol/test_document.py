from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import get_args

from duologue.protocol.commands import Command
from duologue.protocol.document import protocol_page
from duologue.protocol.errors import ErrorCode
from duologue.protocol.events import Event

PAGE = Path(__file__).parents[3] / "docs/protocol.md"


def test_the_page_is_as_fresh_as_the_classes() -> None:
    assert PAGE.read_text(encoding="utf-8") == protocol_page(), (
        "run: python -m duologue.protocol.document > docs/protocol.md"
    )


def test_the_module_prints_the_page() -> None:
    printed = subprocess.run(
        [sys.executable, "-m", "duologue.protocol.document"],
        cwd=PAGE.parents[1],
        capture_output=True,
        check=True,
        text=True,
    )
    assert printed.stdout == protocol_page()


def test_the_page_names_every_message_and_every_code() -> None:
    page = protocol_page()
    for member in (*get_args(Command), *get_args(Event)):
        assert f"### `{member.__struct_config__.tag}`" in page
    for code in ErrorCode:
        assert f"| `{code}` |" in page


def test_every_link_leads_to_a_heading() -> None:
    page = protocol_page()
    headings = {line.lstrip("# ").lower() for line in page.splitlines() if line.startswith("### ")}
    targets = {part.split(")")[0] for part in page.split("](#")[1:]}
    assert targets
    assert targets <= headings


def test_fields_are_shown_with_type_need_and_note() -> None:
    page = protocol_page()
    assert (
        "| `audio_end_ms` | integer | yes "
        "| A whole number of milliseconds, 0 or more; clamped to what was sent. |" in page
    )
    assert '| `conversation` | "auto", "none" | no, else "auto" |' in page
