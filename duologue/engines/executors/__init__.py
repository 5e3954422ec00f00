"""Where workers run; each executor passes the same contract suite."""
