"""The aiohttp edge: decodes, encodes, authenticates, admits. Owns no call state."""
