"""Loads what the ``wyoming`` package needs, which warns that Python 3.13 lacks it."""

from __future__ import annotations

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import wyoming.audio  # noqa: F401
