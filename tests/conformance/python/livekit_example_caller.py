"""The example of a LiveKit agent, imported as it is and asked one thing, without a room."""

import asyncio
import sys
from pathlib import Path

from calling import Complaints, Heard, report

sys.path.insert(0, str(Path(__file__).parents[3] / "examples"))

import livekit_agent


async def main(heard: Heard) -> None:
    session = livekit_agent.make_session()

    @session.on("conversation_item_added")
    def on_item(event: object) -> None:
        if event.item.type == "message":
            heard.note(**{f"{event.item.role}: {event.item.text_content}": True})

    session.on("error", lambda event: heard.note(error=str(event.error)[:500]))
    await session.start(livekit_agent.Waiter(), record=False)
    await session.generate_reply(user_input="what is the price of tea")
    await heard.until("assistant: Well, you said x is not on the menu.")
    await session.aclose()


complaints, heard = Complaints(), Heard()
asyncio.run(main(heard))
report(heard.notes, complaints.said)
