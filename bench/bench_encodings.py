"""What a second of speech costs on the wire and in CPU: PCM and Opus, in JSON and in MessagePack.

Speech of the bundled questions at 24 kHz, in messages of 200 ms, as the gateway sends it and as a
client appends it. CPU is that of the gateway's side: encoding and writing, or reading and decoding,
on one core, best of all rounds. The way in decodes to 16 kHz, as detectors hear.
"""

from __future__ import annotations

import argparse
import sys
import timeit
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

import msgspec
import soundfile

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.report import Report, print_table
from duologue.codecs.decoder import input_decoder
from duologue.codecs.encoder import output_encoder
from duologue.codecs.resample import StreamResampler
from duologue.protocol.append_audio import AppendAudio
from duologue.protocol.audio_formats import AudioFormat, OpusFormat, PcmFormat
from duologue.protocol.dialect import Dialect
from duologue.protocol.json_codec import REALTIME_JSON, encode_command
from duologue.protocol.msgpack_codec import REALTIME_MSGPACK
from duologue.protocol.response_events import AudioDelta

RATE_HZ = 24_000
MESSAGE_BYTES = RATE_HZ * 2 * 200 // 1000
QUESTIONS = Path(__file__).resolve().parents[1] / "duologue" / "assets" / "questions"
PLACE: dict[str, Any] = {
    "response_id": "resp_0123456789abcdefghij",
    "item_id": "item_0123456789abcdefghij",
    "output_index": 0,
    "content_index": 0,
}
FORMATS: dict[str, AudioFormat] = {"PCM": PcmFormat(rate=24000), "Opus": OpusFormat(rate=24000)}
ENCODINGS: dict[str, tuple[Dialect, Callable[[Any], bytes]]] = {
    "JSON": (REALTIME_JSON, encode_command),
    "MessagePack": (REALTIME_MSGPACK, msgspec.msgpack.encode),
}


def speech() -> list[bytes]:
    """All questions, one after the other, in pieces of a message each."""
    pcm = b""
    for path in sorted(QUESTIONS.glob("*.flac")):
        samples, rate_hz = soundfile.read(path, dtype="int16")
        resampler = StreamResampler(rate_hz, RATE_HZ)
        pcm += resampler.process(samples.tobytes()) + resampler.flush()
    return [pcm[i : i + MESSAGE_BYTES] for i in range(0, len(pcm), MESSAGE_BYTES)]


def sent(pieces: list[bytes], audio_format: AudioFormat, dialect: Dialect) -> list[bytes]:
    encoder = output_encoder(RATE_HZ, audio_format)
    wires = [*map(encoder.encode, pieces), encoder.flush()]
    deltas = (AudioDelta(**PLACE, delta=wire) for wire in wires)
    return [dialect.encode_event(delta, 1000) or b"" for delta in deltas]


def heard(messages: list[bytes], audio_format: AudioFormat, dialect: Dialect) -> int:
    decoder = input_decoder(audio_format, 16_000)
    samples = 0
    for message in messages:
        command = dialect.decode_command(message)
        assert isinstance(command, AppendAudio)
        samples += len(decoder.decode(command.audio)) // 2
    return samples


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    pieces = speech()
    seconds = sum(map(len, pieces)) / 2 / RATE_HZ
    report = Report("encodings", f"{seconds:.0f} s of speech, in messages of 200 ms")
    for audio, audio_format in FORMATS.items():
        encoder = output_encoder(RATE_HZ, audio_format)
        wires = [*map(encoder.encode, pieces), encoder.flush()]
        for name, (dialect, write) in ENCODINGS.items():
            appends = [write(AppendAudio(audio=wire)) for wire in wires]
            out = sent(pieces, audio_format, dialect)
            assert heard(appends, audio_format, dialect) > (seconds - 0.1) * 16_000

            def cost_ms(work: Callable[[], object]) -> float:
                return (
                    min(timeit.repeat(work, timer=process_time, number=1, repeat=rounds))
                    * 1000
                    / seconds
                )

            report.add(
                {
                    "audio": audio,
                    "encoding": name,
                    "out_bytes_per_s": sum(map(len, out)) / seconds,
                    "in_bytes_per_s": sum(map(len, appends)) / seconds,
                    "out_cpu_ms_per_s": cost_ms(
                        lambda f=audio_format, d=dialect: sent(pieces, f, d)  # type: ignore[misc]
                    ),
                    "in_cpu_ms_per_s": cost_ms(
                        lambda a=appends, f=audio_format, d=dialect: heard(a, f, d)  # type: ignore[misc]
                    ),
                }
            )
    plain = report.rows[0]["out_bytes_per_s"]
    for row in report.rows:
        row["out_share"] = row["out_bytes_per_s"] / plain
    print_table(report.rows)
    report.finish(
        {
            f"{row['audio']}_{row['encoding']}_{key}".lower(): round(row[key], 3)
            for row in report.rows
            for key in ("out_share", "out_cpu_ms_per_s", "in_cpu_ms_per_s")
        }
    )


if __name__ == "__main__":
    main()
