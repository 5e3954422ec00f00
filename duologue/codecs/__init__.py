"""Audio formats at the edge of the process: sample encodings and rates.

This package must not know messages, sessions or models.
"""

from duologue.codecs.decoder import InputDecoder
from duologue.codecs.encoder import OutputEncoder
from duologue.codecs.g711 import decode_alaw, decode_ulaw, encode_alaw, encode_ulaw
from duologue.codecs.pcm import float_to_pcm, pcm_to_float
from duologue.codecs.resample import StreamResampler

__all__ = [
    "InputDecoder",
    "OutputEncoder",
    "StreamResampler",
    "decode_alaw",
    "decode_ulaw",
    "encode_alaw",
    "encode_ulaw",
    "float_to_pcm",
    "pcm_to_float",
]
