"""Duologue: a realtime full-duplex voice gateway."""

__version__ = "0.1.0.dev0"
