"""Fragmented MP4 that is sent while it is made."""
