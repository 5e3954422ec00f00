"""Sizes that a client may not exceed, with their units in their names.

Settings may lower some of them; these are what the wire allows at most.
"""

from __future__ import annotations

MAX_APPEND_BYTES = 15 * 1024 * 1024
"""Decoded audio of one ``input_audio_buffer.append``."""

MAX_MESSAGE_BYTES = (MAX_APPEND_BYTES + 2) // 3 * 4 + 64 * 1024
"""One message from a client: the largest append in base64 and its envelope; past it, close 1009."""

MAX_SERVER_MESSAGE_BYTES = 1024 * 1024
"""One message to a client: the smallest default limit among stock clients."""

MAX_EVENT_ID_CHARS = 512
"""A client's own id of an event; it comes back in errors."""

MAX_ITEM_ID_CHARS = 128
MAX_CALL_ID_CHARS = 128
MAX_INSTRUCTIONS_CHARS = 256 * 1024
MAX_ITEM_TEXT_CHARS = 256 * 1024
"""Text of one part, arguments of one call or output of one tool."""

MAX_WRITTEN_BYTES = 768 * 1024
"""All text of an item, or all settings of a session, as JSON: it comes back in one message."""

MAX_NESTING_LEVELS = 64
"""Levels of a tool's JSON Schema, or of the labels of a trace."""


MAX_VALUES = 64 * 1024
"""Values of a long message, and strings: what is made of millions of them takes longer to read than
a call may wait. Audio and pictures are one each."""

MAX_CONTENT_PARTS = 128
MAX_RESPONSE_INPUT_ITEMS = 1024
MAX_TOOLS = 128
MAX_TOOL_NAME_CHARS = 64
MAX_METADATA_PAIRS = 16
MAX_METADATA_KEY_CHARS = 64
MAX_METADATA_VALUE_CHARS = 512

MIN_COMMIT_MS = 100
"""Less audio than this is no utterance: the commit is refused and the audio stays buffered."""

MAX_OPUS_APPEND_MS = 2_000
"""Opus of one append: it is decoded at once."""

MAX_OPUS_APPEND_BYTES = 48_000
"""The same in bytes."""

MAX_INPUT_GAP_MS = 10_000
"""Audio that may be missing before an append with ``start_sample``; it is heard as silence, in Opus
not at all."""
