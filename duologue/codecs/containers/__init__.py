"""Audio files and streams with a container around them: mp3, Ogg, WAV and their kin, by PyAV.

Written piece by piece as speech is made; read in a process of its own, since what is read comes
from strangers. This package must not know messages, routes or models.
"""

from duologue.codecs.containers.decoder import AudioFileDecoder
from duologue.codecs.containers.encoder import AudioFileEncoder
from duologue.codecs.containers.formats import (
    ACCEPTED_FORMATS,
    CONTENT_TYPES,
    OutputFormat,
    ReadLimits,
)

__all__ = [
    "ACCEPTED_FORMATS",
    "CONTENT_TYPES",
    "AudioFileDecoder",
    "AudioFileEncoder",
    "OutputFormat",
    "ReadLimits",
]
