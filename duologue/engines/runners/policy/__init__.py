"""Policies that drive robots."""
