"""Audio files of strangers as PCM: by content, within limits, off the loop.

Plain WAV is read here; everything else in a child process, which is killed when it takes too long,
and which may crash. This module must not know who sent a file.
"""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import numpy as np

from duologue.codecs.containers import decode_child
from duologue.codecs.containers.formats import ACCEPTED_FORMATS, ReadLimits
from duologue.codecs.containers.wav import PlainWav, read_plain_wav
from duologue.codecs.resample import StreamResampler
from duologue.core.audio import SAMPLE_BYTES
from duologue.core.errors import ClientError, LimitExceeded

UNDECODABLE = "undecodable_audio"

PIECE_S = 1.0
"""Audio that is handed over at once, at most."""

_WRITE_BYTES = 256 * 1024
_TAIL_BYTES = 4096
_WAV_STEP_HZ = 25
"""Other rates would need filters of many megabytes; libav converts those."""


class AudioFileDecoder:
    """Decodes files.

    Args:
        processes: How many files may be decoded at a time; others wait.
    """

    def __init__(self, limits: ReadLimits | None = None, processes: int = 4) -> None:
        self.limits = limits or ReadLimits()
        self._places = asyncio.Semaphore(processes)

    @asynccontextmanager
    async def open(self, data: bytes, rate_hz: int) -> AsyncIterator[AsyncIterator[bytes]]:
        """Begin to decode a file; what is not read is never decoded.

        Args:
            data: The whole file. Its name does not matter.
            rate_hz: Of the PCM that is wanted.

        Yields:
            The audio as s16le mono PCM, piece by piece, ``PIECE_S`` at most. Iterating raises
            ``ClientError`` where the file cannot be decoded, and ``LimitExceeded`` where it turns
            out to be too long; what came before was right.

        Raises:
            ClientError: The file is empty.
            LimitExceeded: It has too many bytes or channels.
        """
        limits = self.limits
        if len(data) > limits.max_bytes:
            raise LimitExceeded(
                f"the audio file has {len(data)} bytes, the limit is {limits.max_bytes}",
                param="file",
            )
        if not data:
            raise undecodable("the audio file is empty")
        wav = read_plain_wav(data)
        if wav is not None and wav.rate_hz % _WAV_STEP_HZ == 0:
            yield _from_wav(wav, rate_hz, limits)
            return
        async with self._places, _child(data, rate_hz, limits) as pcm:
            yield pcm

    async def decode(self, data: bytes, rate_hz: int) -> bytes:
        """Return all the audio of a file as s16le mono PCM.

        Raises:
            ClientError: There is nothing in it that can be decoded.
            LimitExceeded: It has too many bytes, seconds or channels.
        """
        async with self.open(data, rate_hz) as pieces:
            return b"".join([piece async for piece in pieces])


def undecodable(what: str) -> ClientError:
    """Return the error for a file that is none of those we read."""
    return ClientError(
        f"{what}; send one of: {', '.join(ACCEPTED_FORMATS)}", code=UNDECODABLE, param="file"
    )


def _too_long(seconds: float, limits: ReadLimits) -> LimitExceeded:
    return LimitExceeded(
        f"the audio lasts {seconds:.0f} s or more, the limit is {limits.max_s:.0f} s; "
        "send it in parts",
        param="file",
    )


def _too_many_channels(channels: int, limits: ReadLimits) -> ClientError:
    return undecodable(f"the audio has {channels} channels, the limit is {limits.max_channels}")


async def _from_wav(wav: PlainWav, rate_hz: int, limits: ReadLimits) -> AsyncIterator[bytes]:
    if wav.channels > limits.max_channels:
        raise _too_many_channels(wav.channels, limits)
    seconds = len(wav.pcm) / (wav.rate_hz * wav.channels * SAMPLE_BYTES)
    if seconds > limits.max_s:
        raise _too_long(seconds, limits)
    if not wav.pcm:
        raise undecodable("the WAV file holds no audio")
    for piece in _resampled(wav, rate_hz):
        yield piece
        await asyncio.sleep(0)  # a piece costs a millisecond; others get their turn


def _resampled(wav: PlainWav, rate_hz: int) -> Iterator[bytes]:
    resampler = StreamResampler(wav.rate_hz, rate_hz)
    step = int(PIECE_S * wav.rate_hz) * wav.channels * SAMPLE_BYTES
    for start in range(0, len(wav.pcm), step):
        samples = np.frombuffer(wav.pcm[start : start + step], "<i2")
        if wav.channels > 1:
            samples = samples.reshape(-1, wav.channels).mean(axis=1).astype("<i2")
        yield resampler.process(samples.tobytes())
    yield resampler.flush()


@asynccontextmanager
async def _child(
    data: bytes, rate_hz: int, limits: ReadLimits
) -> AsyncIterator[AsyncIterator[bytes]]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-P", str(Path(decode_child.__file__))),
        *(str(rate_hz), str(limits.max_channels), str(limits.max_s)),
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
    )
    try:
        yield _from_child(process, data, rate_hz, limits)
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await _let_go(process)


async def _from_child(
    process: Process, data: bytes, rate_hz: int, limits: ReadLimits
) -> AsyncIterator[bytes]:
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    piece_bytes = int(PIECE_S * rate_hz) * SAMPLE_BYTES
    rest = b""
    try:
        async with asyncio.timeout(limits.stall_s):
            await _send(process.stdin, data)
        while True:
            async with asyncio.timeout(limits.stall_s):
                read = await process.stdout.read(piece_bytes)
            if not read:
                break
            read = rest + read
            whole = len(read) - len(read) % SAMPLE_BYTES
            rest = read[whole:]
            yield read[:whole]
        async with asyncio.timeout(limits.stall_s):
            reason = await process.stderr.read(_TAIL_BYTES)
            status = await process.wait()
    except TimeoutError:
        raise undecodable(
            f"decoding the audio file took longer than {limits.stall_s:.0f} s"
        ) from None
    if status != 0:
        raise _refusal(status, reason.decode(errors="replace"), limits)


async def _send(stdin: asyncio.StreamWriter, data: bytes) -> None:
    # A child that has died takes no more; its status says why.
    with suppress(BrokenPipeError, ConnectionResetError):
        for start in range(0, len(data), _WRITE_BYTES):
            stdin.write(data[start : start + _WRITE_BYTES])
            await stdin.drain()
        stdin.close()


def _refusal(status: int, reason: str, limits: ReadLimits) -> ClientError:
    kind, _, value = reason.strip().partition(" ")
    if status == decode_child.REFUSED and value.isdecimal():
        if kind == decode_child.TOO_LONG:
            return _too_long(int(value), limits)
        if kind == decode_child.TOO_MANY_CHANNELS:
            return _too_many_channels(int(value), limits)
    # A crash, too, was brought about by the file: nothing else goes in.
    return undecodable("there is no audio in the file that can be decoded")


async def _let_go(process: Process) -> None:
    """Wait for a killed child, and read what it left, so that its pipes are closed."""
    assert process.stdin is not None
    process.stdin.close()
    await process.communicate()
