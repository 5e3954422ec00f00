from __future__ import annotations

from duologue.telemetry import LabelSets, Metrics
from duologue.telemetry.gathering import FigureTaker, gathered_page

PLUGINS = LabelSets(plugins=("echo",))


async def test_the_figures_of_all_processes_stand_on_one_page() -> None:
    host, edge = Metrics(PLUGINS), Metrics(PLUGINS)
    host.sessions_active.set(3)
    host.ttfa["echo"].observe(0.1)
    taken = [
        await FigureTaker(host, version="1").take("host"),
        await FigureTaker(edge, version="1").take("edge-0"),
    ]
    page = gathered_page(taken).body.decode()
    assert 'duologue_sessions_active{process="host"} 3.0' in page
    assert 'duologue_sessions_active{process="edge-0"} 0.0' in page
    assert page.count("# TYPE duologue_sessions_active gauge") == 1
    assert 'duologue_ttfa_seconds_count{plugin="echo",process="host"} 1.0' in page
    assert 'process_cpu_seconds_total{process="edge-0"}' in page


async def test_the_form_is_chosen_as_on_any_page() -> None:
    taken = [await FigureTaker(Metrics(PLUGINS), version="1").take("host")]
    page = gathered_page(taken, "application/openmetrics-text; version=1.0.0")
    assert page.content_type.startswith("application/openmetrics-text")
    assert page.body.endswith(b"# EOF\n")
