"""What was said in spoken answers, for clients that send back an id in place of the words.

Bounded by number and by time. This module must not know requests.
"""

from __future__ import annotations

from collections import OrderedDict

KEPT_S = 3600
MOST = 1000


class SpokenAnswers:
    """The latest ones.

    Args:
        most: How many are kept; the oldest is forgotten first.

    Units:
        Times are Unix seconds.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._answers: OrderedDict[str, tuple[int, str]] = OrderedDict()

    def keep(self, answer_id: str, text: str, expires_at: int) -> None:
        """Remember what was said."""
        self._answers[answer_id] = (expires_at, text)
        while len(self._answers) > self._most:
            self._answers.popitem(last=False)

    def get(self, answer_id: str, now: float) -> str | None:
        """Return what was said, unless it was forgotten."""
        expires_at, text = self._answers.get(answer_id, (0, ""))
        if expires_at <= now:
            self._answers.pop(answer_id, None)
            return None
        return text
