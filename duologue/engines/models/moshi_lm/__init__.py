"""The language model of Moshi and PersonaPlex: it hears and speaks in every frame of 80 ms.

A frame is 17 tokens: one of text, eight codes of what the model says, eight of what it hears. The
temporal transformer reads a frame and remembers it; the depth transformer writes the next one,
code by code. This package must not know jobs, slots, pages or sessions: whoever runs it brings the
memory that attention reads.

Source:
    Défossez et al., "Moshi: a speech-text foundation model for real-time dialogue" (2024),
    sections 3.2 and 3.4.
"""
