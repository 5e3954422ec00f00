"""Ask a Duologue server one question: no asyncio, no microphone.

duologue serve                                        # in another terminal
python examples/ask.py "What is the capital of France?"
"""

import os
import sys

from duologue.clients.sync import SyncClient

URL = os.environ.get("DUOLOGUE_URL", "http://localhost:8080")

with SyncClient.connect(URL, api_key=os.environ.get("DUOLOGUE_API_KEY")) as call:
    question = " ".join(sys.argv[1:]) or "What is the capital of France?"
    answer = call.ask(question)
    if answer.error is not None:
        sys.exit(f"{answer.error.code}: {answer.error.message}")
    print(answer.text)
