"""Codes of errors that clients may rely on.

This module must not know who raises what.
"""

from __future__ import annotations

from enum import StrEnum


class ErrorCode(StrEnum):
    """Stable names of what went wrong; clients match them, so none is ever renamed."""

    INVALID_REQUEST = "invalid_request"
    INVALID_JSON = "invalid_json"
    INVALID_VALUE = "invalid_value"
    MISSING_PARAMETER = "missing_required_parameter"
    UNKNOWN_PARAMETER = "unknown_parameter"
