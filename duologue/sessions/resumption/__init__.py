"""Resumption: how a session outlives its connections, and its words the session."""
