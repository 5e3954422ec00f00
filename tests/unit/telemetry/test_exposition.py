from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from duologue.telemetry import LabelSets, Metrics
from duologue.telemetry.exposition import Exposition

LABELS = LabelSets(plugins=("cascaded",), stages=("asr",))


def samples(metrics: Metrics) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    page = Exposition(metrics, version="1.2").page()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(page.body.decode())
        for sample in family.samples
    }


def test_a_scrape_reads_the_current_values() -> None:
    metrics = Metrics(LABELS)
    metrics.sessions_active.set(3)
    metrics.stale_output_dropped["asr"].inc(2)
    found = samples(metrics)
    assert found["duologue_sessions_active", ()] == 3
    assert found["duologue_stale_output_dropped_total", (("stage", "asr"),)] == 2
    assert found["duologue_build_info", (("version", "1.2"),)] == 1


def test_histograms_are_cumulative_and_end_with_infinity() -> None:
    metrics = Metrics(LABELS)
    for value in (0.01, 0.05, 9.0):
        metrics.ttfa["cascaded"].observe(value)
    found = samples(metrics)
    plugin = ("plugin", "cascaded")
    name = "duologue_ttfa_seconds"
    assert found[f"{name}_bucket", (("le", "0.02"), plugin)] == 1
    assert found[f"{name}_bucket", (("le", "0.08"), plugin)] == 2
    assert found[f"{name}_bucket", (("le", "+Inf"), plugin)] == 3
    assert found[f"{name}_count", (plugin,)] == 3
    assert found[f"{name}_sum", (plugin,)] == 9.06


def test_members_that_never_moved_are_zeros_and_not_gaps() -> None:
    found = samples(Metrics(LABELS))
    assert found["duologue_worker_lost_total", (("stage", "asr"),)] == 0


def test_the_process_is_described_too() -> None:
    assert samples(Metrics(LABELS))["process_resident_memory_bytes", ()] > 0


def test_the_format_follows_what_the_scrape_accepts() -> None:
    exposition = Exposition(Metrics(LABELS), version="1")
    assert exposition.page().content_type.startswith("text/plain")
    open_metrics = exposition.page("application/openmetrics-text; version=1.0.0")
    assert open_metrics.content_type.startswith("application/openmetrics-text")
    assert open_metrics.body.endswith(b"# EOF\n")
