from __future__ import annotations

from io import StringIO

from rich.console import Console
from rich.progress import DownloadColumn, Progress, TextColumn

from duologue.artifacts.progress import Bars, Lines, Silence, shown_on


class HandClock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def now(self) -> float:
        return self.now_s

    def wall_time(self) -> float:
        return self.now_s


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_a_log_gets_a_line_for_each_quarter_with_the_rate() -> None:
    stream, clock = StringIO(), HandClock()
    task = Lines(stream, clock).begin("download x", 100_000_000)
    for step in range(1, 101):
        clock.now_s += 0.1
        task.at(step * 1_000_000)
    task.end()
    assert stream.getvalue().splitlines() == [
        "download x: 100.0 MB",
        "download x: 25%, 25.0 MB at 10.0 MB/s",
        "download x: 50%, 50.0 MB at 10.0 MB/s",
        "download x: 75%, 75.0 MB at 10.0 MB/s",
        "download x: 100%, 100.0 MB at 10.0 MB/s",
    ]


def test_a_log_has_no_line_of_what_takes_no_time() -> None:
    stream = StringIO()
    task = Lines(stream, HandClock()).begin("unpack x", 9_999_999)
    task.at(9_999_999)
    task.end()
    assert stream.getvalue() == ""


def test_a_resumed_download_counts_its_rate_from_where_it_began() -> None:
    stream, clock = StringIO(), HandClock()
    task = Lines(stream, clock).begin("download x", 100_000_000, 50_000_000)
    clock.now_s += 1
    task.at(75_000_000)
    assert stream.getvalue().splitlines() == [
        "download x: 100.0 MB, 50.0 MB there",
        "download x: 75%, 75.0 MB at 25.0 MB/s",
    ]


def test_a_download_that_starts_over_is_counted_anew() -> None:
    stream, clock = StringIO(), HandClock()
    task = Lines(stream, clock).begin("download x", 100_000_000, 90_000_000)
    task.at(0)
    clock.now_s += 1
    task.at(30_000_000)
    assert stream.getvalue().splitlines()[-1] == "download x: 30%, 30.0 MB at 30.0 MB/s"


def test_a_terminal_shows_a_bar_until_the_task_ends() -> None:
    stream = Terminal()
    console = Console(file=stream, force_terminal=True, width=100)
    columns = (TextColumn("{task.description}"), DownloadColumn())
    with Progress(*columns, console=console, auto_refresh=False) as progress:
        bars = Bars(progress)
        task = bars.begin("download [x]", 2_000_000)
        task.at(1_000_000)
        progress.refresh()
        assert "1.0/2.0 MB" in stream.getvalue()
        task.end()
        assert progress.tasks == []
        bars.say("x[y]: ready")
    assert "x[y]: ready" in stream.getvalue()


def test_the_kind_of_stream_picks_the_form() -> None:
    with shown_on(StringIO()) as sink:
        assert isinstance(sink, Lines)
    with shown_on(Terminal()) as sink:
        assert isinstance(sink, Bars)


def test_silence_accepts_everything() -> None:
    sink = Silence()
    sink.say("x")
    task = sink.begin("x", 1)
    task.at(1)
    task.end()
