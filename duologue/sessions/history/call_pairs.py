"""Which function call is answered by which output: pure bookkeeping over items of a conversation.

A call has one output at most, and an output has a call: what breaks that is refused. This module
must not know the order of items, or who runs a function.
"""

from __future__ import annotations

from duologue.core.errors import ProtocolError
from duologue.protocol.errors import ErrorCode
from duologue.protocol.items import FunctionCallItem, FunctionCallOutputItem, Item


class CallPairs:
    """The calls of one conversation and their outputs, by ``call_id``."""

    def __init__(self) -> None:
        self._calls: dict[str, str] = {}
        self._outputs: dict[str, str] = {}

    def check(self, item: Item, param: str) -> None:
        """Refuse an item that does not fit the ones that are there.

        Args:
            param: The field that holds the item.

        Raises:
            ProtocolError: It answers no call, or one that is answered already, or it is a call
                with the ``call_id`` of another one.
        """
        match item:
            case FunctionCallItem(call_id=call_id) if call_id in self._calls:
                raise ProtocolError(
                    f"there already is a function call '{call_id[:64]}'",
                    code=ErrorCode.INVALID_VALUE,
                    param=f"{param}.call_id",
                )
            case FunctionCallOutputItem(call_id=call_id) if call_id not in self._calls:
                raise ProtocolError(
                    f"there is no function call '{call_id[:64]}' to answer",
                    code=ErrorCode.TOOL_CALL_UNKNOWN,
                    param=f"{param}.call_id",
                )
            case FunctionCallOutputItem(call_id=call_id) if call_id in self._outputs:
                raise ProtocolError(
                    f"function call '{call_id[:64]}' has its output already: item "
                    f"'{self._outputs[call_id][:64]}'; delete that one first to replace it",
                    code=ErrorCode.TOOL_CALL_ANSWERED,
                    param=f"{param}.call_id",
                )
            case _:
                pass

    def add(self, item: Item) -> None:
        """Note an item that passed ``check``."""
        match item:
            case FunctionCallItem(call_id=call_id):
                self._calls[call_id] = item.id
            case FunctionCallOutputItem(call_id=call_id):
                self._outputs[call_id] = item.id
            case _:
                pass

    def remove(self, item: Item) -> None:
        """Forget an item."""
        match item:
            case FunctionCallItem(call_id=call_id):
                del self._calls[call_id]
            case FunctionCallOutputItem(call_id=call_id):
                del self._outputs[call_id]
            case _:
                pass

    def is_open(self, item: Item) -> bool:
        """Tell whether an item is a call without an output."""
        return isinstance(item, FunctionCallItem) and item.call_id not in self._outputs

    def partner(self, item: Item) -> str | None:
        """Return the id of the call's output or of the output's call."""
        match item:
            case FunctionCallItem(call_id=call_id):
                return self._outputs.get(call_id)
            case FunctionCallOutputItem(call_id=call_id):
                return self._calls.get(call_id)
            case _:
                return None
