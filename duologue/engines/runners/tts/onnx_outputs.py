"""Makes a value inside an ONNX model one of its outputs. Must not know what the model does.

An ONNX file is one protobuf message, and protobuf merges what is appended to a message: so a few
bytes at the end add an output to the graph, and nothing has to be parsed.
"""

from __future__ import annotations

_MODEL_GRAPH = 7
_GRAPH_OUTPUT = 12
_VALUE_NAME = 1
_LENGTH_DELIMITED = 2


def with_output(model: bytes, value: str) -> bytes:
    """Return ``model`` with the value called ``value`` as a further, last output."""
    info = _field(_VALUE_NAME, value.encode())
    return model + _field(_MODEL_GRAPH, _field(_GRAPH_OUTPUT, info))


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | _LENGTH_DELIMITED) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
