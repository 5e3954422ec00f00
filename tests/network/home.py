"""The caller of the network tests, in a process inside its namespace.

Writes its offer as one line of JSON, reads the answer, and then says what becomes of the call. Each
line that it reads afterwards is a message for the data channel.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from aiortc import (
    RTCConfiguration,
    RTCIceServer,
    RTCPeerConnection,
    RTCSessionDescription,
)

from tests.conformance.webrtc_caller import Microphone, offer_of


def say(**line: Any) -> None:
    print(json.dumps(line), flush=True)


async def main() -> None:
    servers = [RTCIceServer(**each) for each in json.loads(sys.argv[1])]
    connection = RTCPeerConnection(RTCConfiguration(iceServers=servers))
    connection.addTrack(Microphone())
    channel = connection.createDataChannel("oai-events")
    channel.on("message", lambda message: say(event=json.loads(message)["type"]))
    connection.on("connectionstatechange", lambda: say(state=connection.connectionState))
    say(offer=await offer_of(connection))
    loop = asyncio.get_running_loop()
    answer = json.loads(await loop.run_in_executor(None, sys.stdin.readline))["answer"]
    await connection.setRemoteDescription(RTCSessionDescription(answer, "answer"))
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        channel.send(line)
    await connection.close()


asyncio.run(main())
