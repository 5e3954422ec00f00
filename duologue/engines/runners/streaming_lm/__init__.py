"""Lockstep models: many resident streams that hear and speak in every frame, stepped together.

The tick loop lives here, with a clock and a thread of its own; whoever feeds it decides who takes
part, never when. Encoding, the language model and decoding are one step of one device.
"""
