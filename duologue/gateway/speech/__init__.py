"""Text into speech for routes: clauses, pace, voices, files. Knows no transport."""
