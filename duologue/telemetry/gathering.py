"""Figures of several processes on one page: taken in each, written by one.

Each line gets one label more, ``process``. This module must not know how figures travel.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence

import msgspec
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from duologue.telemetry.exposition import MetricsCollector, Page
from duologue.telemetry.looks import Look, take_looks
from duologue.telemetry.metrics import Metrics

LABEL = "process"


class FigureLine(msgspec.Struct, frozen=True, array_like=True):
    """One line: its name with suffix, its labels, its value."""

    name: str
    labels: dict[str, str]
    value: float


class FigureLines(msgspec.Struct, frozen=True, array_like=True):
    """One figure with all its lines."""

    name: str
    help: str
    kind: str
    lines: list[FigureLine]


class ProcessFigures(msgspec.Struct, frozen=True, array_like=True):
    """All figures of one process, by the name that the others know it by."""

    process: str
    figures: list[FigureLines]


class FigureTaker:
    """Takes the figures of this process, those of the operating system's too.

    Args:
        refresh: Called before, for those that nobody writes meanwhile.
    """

    def __init__(self, metrics: Metrics, *, version: str, refresh: Sequence[Look] = ()) -> None:
        self.refresh = refresh
        self._registry = CollectorRegistry()
        self._registry.register(MetricsCollector(metrics, version))
        ProcessCollector(registry=self._registry)

    async def take(self, process: str) -> ProcessFigures:
        """Return them as they are now, under the name of the process."""
        await take_looks(self.refresh)
        return await asyncio.to_thread(self._take, process)

    def _take(self, process: str) -> ProcessFigures:
        """Reads files: not for the event loop."""
        return ProcessFigures(
            process,
            [
                FigureLines(
                    metric.name,
                    metric.documentation,
                    metric.type,
                    [
                        FigureLine(sample.name, dict(sample.labels), float(sample.value))
                        for sample in metric.samples
                    ],
                )
                for metric in self._registry.collect()
            ],
        )


def gathered_page(processes: Sequence[ProcessFigures], accept: str = "") -> Page:
    """Write the figures of all processes in the best format that ``Accept`` allows."""
    registry = CollectorRegistry()
    registry.register(_Gathered(processes))
    encode, content_type = choose_encoder(accept)
    return Page(encode(registry), content_type)


class _Gathered(Collector):
    def __init__(self, processes: Iterable[ProcessFigures]) -> None:
        self._processes = processes

    def collect(self) -> Iterator[Metric]:
        """Put lines of the same figure together, whichever process they come from."""
        metrics: dict[str, Metric] = {}
        for each in self._processes:
            for figure in each.figures:
                metric = metrics.setdefault(
                    figure.name, Metric(figure.name, figure.help, figure.kind)
                )
                for line in figure.lines:
                    metric.add_sample(line.name, {**line.labels, LABEL: each.process}, line.value)
        yield from metrics.values()
