"""How payloads too large for a message get from one stage to another; one transport a file."""
