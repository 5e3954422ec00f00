"""Mutated bodies on every plain HTTP route: ``python -m tests.faults.http_fuzz --requests 20000``.

A real gateway with scripted models. No body may lead to a 500 or to a crash, each refusal has a
stable code, calls that begin are hung up, and at the end the server does its work and has nothing
left over.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import os
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from structlog.testing import capture_logs

from duologue.codecs.containers.wav import wav_header
from duologue.gateway.http.settings import HttpSettings
from duologue.protocol.errors import MAX_MESSAGE_CHARS, ErrorCode
from tests.fakes.chat_gateway import (
    ADMIN_KEY,
    CLOCK,
    PLACE,
    WEATHER,
    ChatGateway,
    chat_gateway,
    full_settings,
    question,
)
from tests.fakes.pictures import picture
from tests.faults.mutator import Mutator
from tests.faults.scripted_models import BEEP_RATE_HZ, beeps
from tests.faults.sdp_offers import OfferMutator, real_offers
from tests.patience import until

HTTP = HttpSettings(max_output_tokens=64, max_body_bytes=1 << 20)
ADMIN = "/v1/omni/"
BOUNDARY = "b0undary"
AT_A_TIME = 8

_PCM = beeps("hello again")
_WAV = wav_header(BEEP_RATE_HZ, len(_PCM)) + _PCM
_RECORDING = {
    "type": "input_audio",
    "input_audio": {"data": base64.b64encode(_WAV).decode(), "format": "wav"},
}
_CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": PLACE}}
_FORM = {"type": "json_schema", "json_schema": {"schema": {"type": "object"}}}
_SESSION = {"type": "realtime", "instructions": "Be kind.", "audio": {"output": {"voice": "one"}}}

ELSEWHERE = "*"

BODIES: Mapping[str, Sequence[dict[str, Any]]] = {
    "/v1/chat/completions": (
        question("hello", model="duologue", temperature=0.5, top_p=0.9, seed=7, stop=["x"]),
        question("hello", stream=True, stream_options={"include_usage": True}, max_tokens=9),
        question("weather", model="caller", tools=[WEATHER, CLOCK], tool_choice="required"),
        question("hello", modalities=["text", "audio"], audio={"voice": "alloy", "format": "mp3"}),
        question("hello", modalities=["audio"], stream=True, audio={"voice": {"id": "two"}}),
        question("hello", response_format=_FORM),
        {"messages": [{"role": "user", "content": [_RECORDING, {"type": "text", "text": "Hi"}]}]},
        {
            "model": "caller",
            "messages": [
                {"role": "developer", "content": [{"type": "text", "text": "Be kind."}]},
                {"role": "user", "content": "weather"},
                {"role": "assistant", "content": None, "tool_calls": [_CALL]},
                {"role": "tool", "tool_call_id": "c1", "content": "sunny"},
                {"role": "assistant", "audio": {"id": "audio_1"}},
            ],
            "tools": [WEATHER],
            "tool_choice": {"type": "function", "function": {"name": "weather"}},
        },
    ),
    "/v1/audio/speech": (
        {"model": "tts-1", "input": "Hello there.", "voice": "alloy", "speed": 1.5},
        {"input": "Hello.", "voice": {"id": "two"}, "response_format": "wav", "stream": False},
        {"input": "Hello.", "response_format": "pcm", "stream_format": "sse"},
    ),
    "/v1/images/generations": (
        {"prompt": "a cat", "n": 2, "size": "64x64", "response_format": "url", "seed": 7},
        {"prompt": "a cat", "stream": True, "partial_images": 2, "output_format": "webp"},
        {"prompt": "a cat", "model": "sketches", "num_inference_steps": 2, "guidance_scale": 3.5},
    ),
    "/v1/audio/generations": (
        {"prompt": "rain", "seconds": 0.5, "response_format": "wav", "seed": 7},
        {"prompt": "rain", "n": 2, "response_format": "flac", "negative_prompt": "wind"},
    ),
    "/v1/videos": ({"prompt": "waves", "seconds": "1", "size": "64x64", "seed": 7},),
    "/v1/videos/sync": (
        {"prompt": "waves", "num_frames": 5, "fps": 8, "size": "32x32"},
        {"prompt": "waves", "seconds": 1, "overlap": 2, "num_inference_steps": 2},
    ),
    f"{ADMIN}sleep": ({"stage_ids": [0], "level": 1, "mode": "wait", "timeout_s": 0.1}, {}),
    f"{ADMIN}wakeup": ({"stage_ids": [0, 1]}, {}),
    f"{ADMIN}pause": ({"stage_ids": [0], "mode": "abort", "queue": "refuse", "timeout_s": 0.1},),
    f"{ADMIN}resume": ({"stage_ids": [0]}, {}),
    "/v1/realtime/client_secrets": (
        {"expires_after": {"anchor": "created_at", "seconds": 60}, "session": _SESSION},
        {"session": {"type": "transcription", "audio": {"input": {"turn_detection": None}}}},
    ),
    "/v1/realtime/sessions": ({"model": "duologue", "voice": "alloy", "temperature": 0.7},),
    "/v1/realtime/transcription_sessions": ({"input_audio_format": "pcm16"},),
    ELSEWHERE: ({"session": _SESSION, "sdp": "v=0", "target_uri": "tel:+15550100", "code": 486},),
}
"""Good bodies in JSON; of other routes something is made up."""

_SPEECH = ("file", "audio/wav", _WAV)
_PICTURE = ("image", "image/png", picture(7, "png"))
_START = ("input_reference", "image/png", _PICTURE[2])

FORMS: Mapping[str, Sequence[tuple[Mapping[str, str], tuple[str, str, bytes]]]] = {
    "/v1/audio/transcriptions": (
        ({"model": "whisper-1", "response_format": "verbose_json", "temperature": "0.2"}, _SPEECH),
        ({"stream": "true", "language": "en", "timestamp_granularities[]": "word"}, _SPEECH),
    ),
    "/v1/audio/translations": (({"model": "whisper-1"}, _SPEECH),),
    "/v1/images/edits": (
        ({"prompt": "a dog", "n": "1", "size": "64x64", "strength": "0.5"}, _PICTURE),
        ({"prompt": "a dog", "stream": "true", "partial_images": "1"}, _PICTURE),
    ),
    "/v1/videos": (({"prompt": "waves", "seconds": "1", "size": "64x64"}, _START),),
}
"""Good fields of forms, each with its file: the field, its type and its bytes."""


CALLS = "/v1/realtime/calls"
KINDS = ("application/json", "application/sdp", "text/plain", "multipart/form-data; boundary=b")


class Fuzz:
    """Spoils bodies, and judges the answers."""

    def __init__(self, server: ChatGateway, offers: Sequence[str], seed: int) -> None:
        self._server = server
        self._random = random.Random(seed)
        self._offers = OfferMutator(offers, seed)
        self._json = {path: Mutator(list(bodies), seed) for path, bodies in BODIES.items()}
        self.found: Counter[str] = Counter()

    async def run(self, requests: int) -> None:
        """Send so many to each route that the server has."""
        routes = [path for method, path in self._server.app.paths if method == "POST"]
        before = await self._held_by_connections()
        with capture_logs() as logs:
            # Stages that sleep would do no work for the others.
            for path in sorted(routes, key=lambda path: path.startswith(ADMIN)):
                left = requests
                while left > 0:
                    batch = [self._body(path) for _ in range(min(left, AT_A_TIME))]
                    left -= len(batch)
                    async with asyncio.TaskGroup() as group:
                        for kind, body in batch:
                            group.create_task(self._try(path, kind, body))
                    bad = [entry for entry in logs if entry["log_level"] in ("error", "critical")]
                    assert bad == [], (path, batch, bad)
                    logs.clear()
        for order in ("resume", "wakeup"):
            async with self._server.http.post(f"{ADMIN}{order}", headers=_as_admin()) as answer:
                assert answer.status == 200, await answer.text()
        await until(lambda: self._server.work == 0 and len(self._server.app.sessions) == 0)
        assert (await self._server.ask("hello"))[0] == 200
        await until(lambda: all(now <= then for now, then in zip(held(), before, strict=True)))

    def _body(self, path: str) -> tuple[str, bytes]:
        if path in self._json and (path not in FORMS or self._random.random() < 0.5):
            kinds = ("application/json",) * 9 + ("text/plain", "multipart/form-data")
            return self._random.choice(kinds), self._json[path].message()
        if path == CALLS and self._random.random() < 0.9:
            return self._offers.request()
        if path not in FORMS:
            return self._random.choice(KINDS), self._json[ELSEWHERE].message()
        body = bytearray(_form(*self._random.choice(FORMS[path])))
        for _ in range(self._random.choice((0, 1, 2, 9))):
            body[self._random.randrange(len(body))] = self._random.randrange(256)
        if self._random.random() < 0.3:
            del body[self._random.randrange(len(body)) :]
        return f"multipart/form-data; boundary={BOUNDARY}", bytes(body)

    async def _try(self, path: str, kind: str, body: bytes) -> None:
        headers = {"Content-Type": kind, **(_as_admin() if path.startswith(ADMIN) else {})}
        try:
            url = re.sub(r"{\w+}", "unknown", path)
            async with self._server.http.post(url, data=body, headers=headers) as answer:
                told = await answer.read()
                self.found[f"{path}: {_judge(answer.status, told)}"] += 1
            if path == CALLS and answer.status == 201:
                await self._hang_up(answer.headers["Location"])
        except BaseException as exc:
            exc.add_note(f"{path} {kind}: {body[:500]!r}")
            raise

    async def _held_by_connections(self) -> tuple[int, int]:
        """Open all connections that there will be, and tell what they hold at both ends."""
        together = asyncio.Barrier(AT_A_TIME)

        async def connect() -> None:
            async with self._server.http.get("/health") as answer:
                await together.wait()
                await answer.read()

        async with asyncio.TaskGroup() as group:
            for _ in range(AT_A_TIME):
                group.create_task(connect())
        return held()

    async def _hang_up(self, location: str) -> None:
        async with self._server.http.post(f"{location}/hangup") as answer:
            # The same offer once more has taken its place already.
            assert answer.status in (200, 404), (location, answer.status)


def held() -> tuple[int, int]:
    """How many tasks and open files this process has, sockets among them."""
    return len(asyncio.all_tasks()), len(os.listdir("/proc/self/fd"))


def _judge(status: int, told: bytes) -> str:
    """Check an answer; returns the code of its refusal, or "taken"."""
    if status < 300:
        return "taken"
    assert 400 <= status < 500 or status in (501, 503), (status, told)
    error = json.loads(told)["error"]
    assert error["code"] in set(ErrorCode), error
    assert 0 < len(error["message"]) <= MAX_MESSAGE_CHARS, error
    return str(error["code"])


def _as_admin() -> dict[str, str]:
    return {"Authorization": f"Bearer {ADMIN_KEY}"}


def _form(fields: Mapping[str, str], file: tuple[str, str, bytes]) -> bytes:
    head = f"--{BOUNDARY}\r\nContent-Disposition: form-data; name="
    parts = [f'{head}"{name}"\r\n\r\n{value}\r\n'.encode() for name, value in fields.items()]
    name, kind, content = file
    about = f'{head}"{name}"; filename="a"\r\nContent-Type: {kind}\r\n\r\n'.encode()
    return b"".join((*parts, about, content, f"\r\n--{BOUNDARY}--\r\n".encode()))


async def fuzz(folder: Path, requests: int, seed: int) -> Counter[str]:
    """Send so many bodies to each route; returns how often each code refused one.

    Args:
        folder: An empty one that is on the search path of this process.
    """
    offers = await real_offers()
    async with chat_gateway(full_settings(folder, HTTP)) as server:
        attack = Fuzz(server, offers, seed)
        await attack.run(requests)
        return attack.found


def main() -> None:
    """Fuzz all routes, and print how often each code came."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=4_000, help="to each route")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    started = perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        sys.path.insert(0, folder)
        found = asyncio.run(fuzz(Path(folder), options.requests, options.seed))
    sys.stdout.write(f"{found.total()} requests in {perf_counter() - started:.0f} s\n")
    for code, times in sorted(found.items()):
        sys.stdout.write(f"  {times:>7} {code}\n")


if __name__ == "__main__":
    main()
