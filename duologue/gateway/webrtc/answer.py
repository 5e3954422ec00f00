"""The answer's SDP, as peers outside are to see it.

This module must not know how an answer is made.
"""

from __future__ import annotations

import ipaddress

_HOST_FIELD = 4
_END = "typ host"


def seen_from_outside(sdp: str, public_address: str | None) -> str:
    """Show our addresses as the one that a router maps to them; ports stay as they are.

    Candidates of the other family than the public address are left out: nobody outside reaches
    them.
    """
    if public_address is None:
        return sdp
    version = ipaddress.ip_address(public_address).version
    lines: list[str] = []
    for line in sdp.splitlines():
        if line.startswith("a=candidate:") and _END in line:
            fields = line.split()
            if ipaddress.ip_address(fields[_HOST_FIELD]).version != version:
                continue
            fields[_HOST_FIELD] = public_address
            line = " ".join(fields)
        elif line.startswith("c=IN IP"):
            # Nobody goes by it where there are candidates, but it would show our own address.
            line = f"c=IN IP{version} {public_address}"
        lines.append(line)
    return "".join(f"{line}\r\n" for line in lines)
