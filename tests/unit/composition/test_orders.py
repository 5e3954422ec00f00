from __future__ import annotations

import pytest

from duologue.composition.orders import (
    EdgeOrder,
    HostDrained,
    HostOrder,
    HostReady,
    LoopTurns,
    Order,
    PartReport,
    TakesConnections,
    read_order,
    read_report,
    write_line,
)
from duologue.engines.pools.start_report import StartReport


@pytest.mark.parametrize(
    "order",
    [
        HostOrder(name="host", socket="/run/host.sock", edges=2),
        EdgeOrder(name="edge-0", index=0, socket="/run/host.sock", port=80, signing_key="k"),
    ],
)
def test_an_order_is_one_line(order: Order) -> None:
    line = write_line(order)
    assert line.count(b"\n") == 1
    assert read_order(line) == order


@pytest.mark.parametrize(
    "report",
    [
        TakesConnections("http://localhost:1"),
        HostReady(StartReport(1.0, 2.0, [])),
        HostDrained(),
        LoopTurns(),
    ],
)
def test_a_report_is_one_line(report: PartReport) -> None:
    assert read_report(write_line(report)) == report


def test_what_a_library_prints_is_no_report() -> None:
    assert read_report(b"loading the model ...\n") is None
    assert read_report(b'{"type":"party"}\n') is None
