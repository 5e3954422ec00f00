"""Exports ``Metrics`` in the text formats that Prometheus scrapes.

The only importer of ``prometheus_client``. It must not know what the figures mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from duologue.telemetry.instruments import Counter, Gauge, Histogram
from duologue.telemetry.metrics import Figure, Metrics


@dataclass(frozen=True, slots=True)
class Page:
    """What a scrape is answered with."""

    body: bytes
    content_type: str


class Exposition:
    """Answers scrapes with our figures and those of the process.

    Args:
        version: Published as ``duologue_build_info``.
        registry: A fresh one of its own unless given; never the global one.
    """

    def __init__(
        self, metrics: Metrics, *, version: str, registry: CollectorRegistry | None = None
    ) -> None:
        self._registry = registry if registry is not None else CollectorRegistry()
        self._registry.register(MetricsCollector(metrics, version))
        ProcessCollector(registry=self._registry)

    def page(self, accept: str = "") -> Page:
        """Write all figures in the best format that a scrape's ``Accept`` header allows."""
        encode, content_type = choose_encoder(accept)
        return Page(encode(self._registry), content_type)


class MetricsCollector(Collector):
    """Reads the instruments when a scrape comes; between scrapes it costs nothing."""

    def __init__(self, metrics: Metrics, version: str) -> None:
        self._metrics = metrics
        self._version = version

    def collect(self) -> Iterator[Metric]:
        """Turn each figure into the form that the registry writes."""
        build = GaugeMetricFamily("duologue_build_info", "Always 1.", labels=["version"])
        build.add_metric([self._version], 1)
        yield build
        for figure in self._metrics:
            yield _metric(figure)


def _metric(figure: Figure) -> Metric:
    names = list(figure.labels)
    counters = CounterMetricFamily(figure.name, figure.help, labels=names)
    gauges = GaugeMetricFamily(figure.name, figure.help, labels=names)
    histograms = HistogramMetricFamily(figure.name, figure.help, labels=names)
    filled: Metric = gauges
    for value, instrument in figure.members:
        labels = ([value] if isinstance(value, str) else list(value)) if names else []
        match instrument:
            case Counter():
                counters.add_metric(labels, instrument.value)
                filled = counters
            case Gauge():
                gauges.add_metric(labels, instrument.value)
            case Histogram():
                histograms.add_metric(labels, _buckets(instrument), instrument.sum)
                filled = histograms
    return filled


def _buckets(histogram: Histogram) -> list[tuple[str, float]]:
    """Cumulative counts by upper edge, as the format wants them."""
    edges = [*(f"{edge:g}" for edge in histogram.edges), "+Inf"]
    return list(zip(edges, accumulate(histogram.counts), strict=True))
