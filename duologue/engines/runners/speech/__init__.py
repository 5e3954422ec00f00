"""Speech of neural codecs: a talker makes frames of codes of text, a codec makes sound of them.

A model is one module here: how its talker and its codec are loaded, and one ``speech_runner``.
"""
