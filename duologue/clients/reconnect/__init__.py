"""How a call outlives its connection, seen from the client."""
