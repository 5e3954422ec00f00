"""The OpenAI Realtime dialect as types, with no I/O.

Read in this order: ``items``, ``audio_formats``, ``session_config``, ``commands``, ``events`` with
``response_events``, then ``json_reading`` and ``json_codec``. ``session_patch`` and
``session_merge`` change a session, ``response_config`` settles one response, ``errors`` holds the
one table of codes. This package must not know sockets, sessions or models.
"""
