"""The dialects, by what they say and how they write it.

This module must not know how a client asks for one.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from duologue.protocol.beta_codec import BETA_JSON
from duologue.protocol.dialect import Dialect, Encoding, Family
from duologue.protocol.duplex.json_codec import DUPLEX_JSON
from duologue.protocol.json_codec import REALTIME_JSON
from duologue.protocol.msgpack_codec import DUPLEX_MSGPACK, REALTIME_MSGPACK

DIALECTS: Mapping[tuple[Family, Encoding], Dialect] = MappingProxyType(
    {
        ("realtime", "json"): REALTIME_JSON,
        ("realtime", "msgpack"): REALTIME_MSGPACK,
        ("beta", "json"): BETA_JSON,
        ("duplex", "json"): DUPLEX_JSON,
        ("duplex", "msgpack"): DUPLEX_MSGPACK,
    }
)
