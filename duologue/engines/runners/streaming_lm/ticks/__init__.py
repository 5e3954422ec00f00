"""When a lockstep model steps: groups of sessions, their ticks, and what each brings to one."""
