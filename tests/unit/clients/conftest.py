"""Gateways for the tests of the client."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from duologue.app import App, running_app
from duologue.sessions.settings import SessionSettings
from tests.fakes.small_gateway import API_KEY, small_settings


@pytest_asyncio.fixture
async def gateway() -> AsyncIterator[App]:
    async with running_app(small_settings()) as app:
        yield app


@pytest_asyncio.fixture
async def full_gateway() -> AsyncIterator[App]:
    """Has room for one call, and wants a key."""
    settings = small_settings(api_keys=(API_KEY,), sessions=SessionSettings(max_sessions=1))
    async with running_app(settings) as app:
        yield app
