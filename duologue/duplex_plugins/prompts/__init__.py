"""A conversation as a prompt: what was said as messages, and what stays where they are many.

For plugins whose models read, or hear, the conversation anew for every answer. This package must
not know plugins, requests or which model reads.
"""
