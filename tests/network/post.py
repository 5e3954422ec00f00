"""Posts an offer to a server in this namespace; says when, what and with which status."""

from __future__ import annotations

import json
import sys
import time
import urllib.error
import urllib.request

begun = time.monotonic()
request = urllib.request.Request(
    sys.argv[1], sys.stdin.read().encode(), {"Content-Type": "application/sdp"}
)
with urllib.request.urlopen(request, timeout=20) as response:
    body = response.read().decode()
print(json.dumps({"answer": body, "took_s": time.monotonic() - begun}))
