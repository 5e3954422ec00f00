"""Twilio's signature on what it sends: a proof that it knows the account's token.

This module must not know what is asked.

Source:
    https://www.twilio.com/docs/usage/security#validating-requests
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Iterable

HEADER = "X-Twilio-Signature"


def signature(token: bytes, url: str, fields: Iterable[tuple[str, str]] = ()) -> str:
    """Return the signature of a request.

    Args:
        url: As Twilio was given it, with its query.
        fields: Of the form in its body.
    """
    signed = url + "".join(name + value for name, value in sorted(fields))
    return base64.b64encode(hmac.digest(token, signed.encode(), "sha1")).decode()


def is_signed(
    token: bytes, given: str, urls: Iterable[str], fields: Iterable[tuple[str, str]] = ()
) -> bool:
    """Tell whether a signature is that of one of the addresses that we may be known by."""
    all_fields = tuple(fields)
    matches = [
        hmac.compare_digest(
            given.encode(errors="replace"), signature(token, url, all_fields).encode()
        )
        for url in urls
    ]
    return True in matches
