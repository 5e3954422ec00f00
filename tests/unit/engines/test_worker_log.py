from __future__ import annotations

import io
import json

from duologue.engines.worker_log import MARK, MarkedLines, read_marked


def test_a_line_of_ours_comes_back_with_its_values() -> None:
    out = io.StringIO()
    lines = MarkedLines(out)
    entry = {"event": "model_loading", "percent": 10, "level": "info", "timestamp": "now"}
    lines.write(json.dumps(entry) + "\n")
    lines.flush()
    assert not lines.isatty()
    assert read_marked(out.getvalue()) == ("model_loading", {"percent": 10})


def test_what_anybody_else_prints_is_nothing_of_ours() -> None:
    for line in ('{"event": "x"}', "loading...", MARK + "no JSON", MARK + "[1]"):
        assert read_marked(line) is None
