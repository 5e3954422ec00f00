"""Work that outlives the request that asked for it, and the server that took it."""
