"""Diffusers pipelines with a few thousand random weights, in the true format on disk.

``python -m tests.fakes.tiny_diffusers sd3 FOLDER`` writes one. The same bytes come out on every
machine; what they draw looks like nothing.
"""
