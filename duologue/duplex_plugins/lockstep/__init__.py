"""What models that hear and speak in lockstep have in common: when what they say is an answer."""
