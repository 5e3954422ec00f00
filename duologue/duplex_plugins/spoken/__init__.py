"""Written text as a voice should say it: cut into clauses, without markup, numbers as words.

For whoever lets a voice speak what a language model writes. This package must not know plugins,
requests or voices.
"""
