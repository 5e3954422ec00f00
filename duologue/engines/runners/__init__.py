"""Runners: models behind one contract, found by name."""
