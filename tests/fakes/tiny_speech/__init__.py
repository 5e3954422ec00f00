"""Speech models with a few thousand random weights, in the true format on disk.

``python -m tests.fakes.tiny_speech csm FOLDER`` writes one. The same bytes come out on every
machine; what they say sounds like noise.
"""
