"""The workers of each stage: who is alive, who has room, who waits."""
