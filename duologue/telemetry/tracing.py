"""Turns as OpenTelemetry traces; needs the extra ``otel``. The only importer of OpenTelemetry.

A trace is written when its turn is over, from the moments that were noted: one root span, a span
for each step, an event for each moment. Where it goes is said by OpenTelemetry's own environment
variables. This module must not know how turns come about.
"""

from __future__ import annotations

from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.trace import Status, StatusCode, set_span_in_context

from duologue.core.clock import Clock
from duologue.telemetry.turns import TracedTurn

# Names. The conventions for generative AI are not stable yet: these are ours.
ROOT = "turn"
STEPS = (
    ("listen", "speech_end", "end_of_turn"),
    ("transcribe", "speech_end", "transcript"),
    ("think", "end_of_turn", "first_token"),
    ("compose", "first_token", "first_clause"),
    ("speak", "first_clause", "first_audio"),
    ("deliver", "first_audio", "first_audible"),
    ("answer", "first_audible", "done"),
)
"""Spans and the moments between which they lie. A step whose end came first, since work began on
speculation, has no span; its moments are events all the same."""

MOMENTS = (
    "speech_end",
    "end_of_turn",
    "transcript",
    "first_token",
    "first_clause",
    "first_audio",
    "first_audible",
)

_DEFAULT_SERVICE = "duologue"


class Traces:
    """Writes traces of turns.

    Args:
        exporter: Where they go; by default OTLP over HTTP, as ``OTEL_EXPORTER_OTLP_*`` say.

    Concurrency:
        ``turn`` belongs to the event loop; exporting has a thread of its own.
    """

    def __init__(self, clock: Clock, exporter: SpanExporter | None = None) -> None:
        self._clock = clock
        if exporter is None:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

            exporter = OTLPSpanExporter()
        # OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win over ours.
        ours = Resource({SERVICE_NAME: _DEFAULT_SERVICE})
        resource = Resource.create()
        if str(resource.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
            resource = resource.merge(ours)
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("duologue")

    def turn(self, turn: TracedTurn) -> None:
        """Write the trace of a turn that is over."""
        times = turn.times
        known = {name: at for name in MOMENTS if (at := getattr(times, name)) is not None}
        if times.done is None:
            return
        # The person's speech began it; a draft of the answer may be older than the decision.
        start = known.get("speech_end", min(known.values(), default=times.done))
        offset = self._clock.wall_time() - self._clock.now()

        def nanoseconds(at: float) -> int:
            return int((at + offset) * 1e9)

        root = self._tracer.start_span(
            ROOT,
            start_time=nanoseconds(start),
            attributes={
                "duologue.session.id": turn.session_id,
                "duologue.model": turn.model,
                "duologue.response.id": turn.response_id,
                "duologue.response.status": turn.status,
                "duologue.response.reason": turn.reason,
            },
        )
        for name, at in known.items():
            root.add_event(name, timestamp=nanoseconds(at))
        if turn.status == "failed":
            root.set_status(Status(StatusCode.ERROR, turn.reason))
        inside = set_span_in_context(root)
        moments = {**known, "done": times.done}
        for name, begin, end in STEPS:
            if begin in moments and end in moments and moments[begin] <= moments[end]:
                step = self._tracer.start_span(
                    name, context=inside, start_time=nanoseconds(moments[begin])
                )
                step.end(nanoseconds(moments[end]))
        root.end(nanoseconds(times.done))

    def close(self) -> None:
        """Send what is left. Waits for the network: call it in a thread."""
        self._provider.shutdown()
