"""Observations of robots, before a policy sees them."""
