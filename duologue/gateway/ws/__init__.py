"""WebSocket: the channel (frames), the connection (messages) and the Realtime endpoint."""
