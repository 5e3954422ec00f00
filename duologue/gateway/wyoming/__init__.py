"""The Wyoming protocol, over which Home Assistant asks for speech and for transcription."""
