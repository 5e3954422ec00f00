"""How long a test waits for what must come, before it says that it hangs."""

PATIENCE_S = 60.0
"""A guard and no measure: on a machine that is busy elsewhere everything takes several times as
long as alone, and that is no fault of what is tested."""
