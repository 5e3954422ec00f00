"""Recording: a session's machine on tape, and the tape run again."""
