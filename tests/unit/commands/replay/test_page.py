"""A recorded call as one HTML file."""

from __future__ import annotations

import re

from duologue.commands.replay.page import write_page


def test_the_page_needs_nothing_else_and_means_what_it_says() -> None:
    page = write_page("a <call>", "<svg></svg>\n", ("a", "b"), (("1", "<2>"),), ["<line>"])
    assert page.startswith("<!doctype html>")
    assert "<title>a &lt;call&gt;</title>" in page
    assert "<td>&lt;2&gt;</td>" in page
    assert "&lt;line&gt;" in page
    assert not re.search(r"(src|href)=|url\(|@import|<script", page)


def test_without_rows_there_is_no_table() -> None:
    assert "<table>" not in write_page("t", "<svg></svg>", (), (), [])
