"""Speech recognition: Whisper on this machine, or any OpenAI-compatible server."""
