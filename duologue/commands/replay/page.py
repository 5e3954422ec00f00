"""A recorded call as one HTML file that needs nothing else. This module must not draw."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from duologue.commands.picture.palette import FAINT, INK, PAPER

_STYLE = f"""
body {{ margin: 1.5rem; background: {PAPER}; color: {INK}; font: 15px/1.5 system-ui, sans-serif }}
figure {{ margin: 0 0 1.5rem; overflow-x: auto }}
table {{ border-collapse: collapse; margin: 0 0 1.5rem }}
th, td {{ padding: .25rem .75rem; text-align: right; border-bottom: 1px solid {FAINT}55 }}
th {{ font-weight: 600 }}
pre {{ white-space: pre-wrap; margin: 0 }}
"""


def write_page(
    title: str,
    svg: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    lines: Sequence[str],
) -> str:
    """Return the page."""
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" if rows else ""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<figure>\n{svg}</figure>\n{table}\n<pre>{escape(chr(10).join(lines))}</pre>\n"
        "</body>\n</html>\n"
    )
