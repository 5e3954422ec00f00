"""Watching: what is noted about sessions from outside, and who ends those whose end has failed."""
