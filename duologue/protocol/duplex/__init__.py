"""The duplex dialect: what both sides say beyond the Realtime API when both may talk at once."""
