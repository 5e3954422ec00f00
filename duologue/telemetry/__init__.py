"""What Duologue says about itself: logs, figures, and the last seconds of a failed session.

Loads no exporter and no settings, so that the client can log without the server's packages; those
are ``telemetry.exposition`` and ``telemetry.settings``.
"""

from duologue.telemetry.flight import (
    Flight,
    decode_flight,
    encode_flight,
    keep_flight,
    write_flight,
)
from duologue.telemetry.instruments import Counter, Family, Gauge, Grid, Histogram
from duologue.telemetry.logging import Logger, bound, configure_logging, get_logger
from duologue.telemetry.loop_lag import LoopLagProbe
from duologue.telemetry.metrics import LabelSets, Metrics
from duologue.telemetry.recorder import Direction, Entry, FlightRecorder, Kinds

__all__ = [
    "Counter",
    "Direction",
    "Entry",
    "Family",
    "Flight",
    "FlightRecorder",
    "Gauge",
    "Grid",
    "Histogram",
    "Kinds",
    "LabelSets",
    "Logger",
    "LoopLagProbe",
    "Metrics",
    "bound",
    "configure_logging",
    "decode_flight",
    "encode_flight",
    "get_logger",
    "keep_flight",
    "write_flight",
]
