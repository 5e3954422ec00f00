"""Sessions: pure machines for turns, responses and playback, and the shell that drives them."""
