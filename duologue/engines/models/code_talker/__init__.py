"""Talkers that draw a frame of codes in two strides, as CSM and Qwen3-Omni do.

A large transformer draws the first code of a frame; a small one draws the others, each from those
before it, over keys and values that last for one frame. What families differ in, how text becomes
a prompt and which weights stand where, is their runner's. Needs torch.
"""
