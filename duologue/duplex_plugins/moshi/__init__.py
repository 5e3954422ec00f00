"""Moshi: a voice of its own, and nothing to be told. Everything else is ``lockstep``."""
