"""For who runs the server: open sessions, live. Off unless there is an admin key."""
