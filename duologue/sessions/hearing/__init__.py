"""Hearing: from the microphone to turns and transcripts, and how the person holds the floor."""
