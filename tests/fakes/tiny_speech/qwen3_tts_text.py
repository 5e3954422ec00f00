"""What the tiny Qwen3-TTS is asked to say, for both sides of the comparison."""

from __future__ import annotations

TEXT, INSTRUCTIONS = "Hello there, you.", "Speak softly."
FRAMES = 24
EXPECTED = "expected.npz"
