"""Synthesisers."""
