"""A LiveKit agent whose model is a Duologue server.

duologue serve                                              # in another terminal
pip install livekit-agents livekit-plugins-openai
python examples/livekit_agent.py console                    # talk in this terminal
python examples/livekit_agent.py dev                        # or in a room

For a room, set LIVEKIT_URL, LIVEKIT_API_KEY and LIVEKIT_API_SECRET. Only the base URL of LiveKit's
OpenAI plugin is changed; DUOLOGUE_BASE_URL and DUOLOGUE_API_KEY name another server.
"""

import os

from livekit.agents import Agent, AgentServer, AgentSession, JobContext, cli, function_tool
from livekit.plugins import openai

BASE_URL = os.environ.get("DUOLOGUE_BASE_URL", "http://localhost:8080/v1")
API_KEY = os.environ.get("DUOLOGUE_API_KEY", "any")

MENU = {"tea": "two euros", "cake": "four euros", "soup": "six euros"}


class Waiter(Agent):
    """Knows the menu."""

    def __init__(self) -> None:
        super().__init__(instructions="You are a waiter. Be kind and brief. Look prices up.")

    @function_tool
    async def price(self, what: str) -> str:
        """Tell the price of something on the menu.

        Args:
            what: One thing, such as tea.
        """
        return f"{what} costs {MENU[what]}" if what in MENU else f"{what} is not on the menu"


def make_session() -> AgentSession:
    """Hearing, thinking and speaking are all the server's."""
    return AgentSession(llm=openai.realtime.RealtimeModel(base_url=BASE_URL, api_key=API_KEY))


server = AgentServer()


@server.rtc_session()
async def serve(job: JobContext) -> None:
    """Hold one call."""
    session = make_session()
    await session.start(Waiter(), room=job.room)
    session.generate_reply(instructions="Greet the guest.")


if __name__ == "__main__":
    cli.run_app(server)
