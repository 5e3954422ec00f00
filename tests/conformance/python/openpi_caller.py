"""Drives with openpi's client: metadata, a chunk played action by action, an error, and on."""

import json
import os

import numpy as np
from openpi_client.action_chunk_broker import ActionChunkBroker
from openpi_client.image_tools import resize_with_pad
from openpi_client.websocket_client_policy import WebsocketClientPolicy

URL = os.environ["DUOLOGUE_BASE_URL"].replace("http", "ws", 1) + "/realtime/robot/openpi"

policy = WebsocketClientPolicy(URL, api_key=os.environ["DUOLOGUE_API_KEY"])
metadata = policy.get_server_metadata()
height, width = metadata["image_resolution"]
camera = np.random.default_rng(1).integers(0, 256, (48, 64, 3), np.uint8)
seen = {key: resize_with_pad(camera, height, width) for key in metadata["camera_keys"]}
seen[metadata["state_key"]] = np.linspace(-1, 1, metadata["state_dim"])
seen[metadata["prompt_key"]] = "fold"
seen["seed"] = np.int64(5)

chunk = policy.infer(seen)["actions"]
broker = ActionChunkBroker(policy, metadata["action_horizon"])
played = [broker.infer(seen)["actions"] for _ in range(metadata["action_horizon"])]

try:
    policy.infer({**seen, metadata["state_key"]: np.zeros(99)})
    error = "none"
except RuntimeError as exc:
    error = json.loads(str(exc).split("\n", 1)[1])["error"]["code"]
after = policy.infer(seen)["actions"]

report = {
    "metadata": metadata,
    "shape": list(chunk.shape),
    "dtype": str(chunk.dtype),
    "played": bool((np.array(played) == chunk).all()),
    "error": error,
    "after": bool((after == chunk).all()),
}
print("REPORT", json.dumps(report), flush=True)
