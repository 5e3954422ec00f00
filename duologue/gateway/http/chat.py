"""``POST /v1/chat/completions``: one turn of a conversation that the client keeps.

This module must not know how an answer comes about.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from contextlib import closing

import msgspec
from aiohttp import web

from duologue.codecs.containers import AudioFileDecoder
from duologue.engines.payloads import ChatRequest
from duologue.gateway.catalogue import ServedModel
from duologue.gateway.chat.checks import Wanted, check
from duologue.gateway.chat.hearing import Hearing
from duologue.gateway.chat.prompt import chat_prompt, recordings, spoken_references
from duologue.gateway.chat.turn import Sink, Turn
from duologue.gateway.chat.writing import ChunkedAnswer, Label, WholeAnswer
from duologue.gateway.http.body import read_json
from duologue.gateway.http.routes import EVENTS, JSON, Content, Route
from duologue.gateway.http.services import HttpServices
from duologue.gateway.http.streamed import DONE, event_stream
from duologue.gateway.speech.voices import Manner, manner, model_voice
from duologue.hosts.answers import AnswersPort
from duologue.hosts.spoken_answers import KEPT_S
from duologue.protocol.chat_completion import ChatCompletion, ChatCompletionChunk
from duologue.protocol.chat_request import ChatCompletionRequest
from duologue.protocol.errors import refused, shown

_DECODER = msgspec.json.Decoder(ChatCompletionRequest)
_SEED_BITS = 32
_EXAMPLE = {
    "model": "duologue",
    "messages": [{"role": "user", "content": "What is the capital of France?"}],
}


class ChatRoutes:
    """The route.

    Args:
        files: Reads recordings.
        answers: Keeps what was said, for clients that send back its id.
        dice: Draws seeds for those who name none.
    """

    def __init__(
        self,
        services: HttpServices,
        files: AudioFileDecoder,
        answers: AnswersPort,
        dice: random.Random | None = None,
    ) -> None:
        self._services = services
        self._hearing = Hearing(services.engine, files)
        self._answers = answers
        self._dice = dice or random.SystemRandom()

    def routes(self) -> Sequence[Route]:
        """For the application."""
        return (
            Route(
                method="POST",
                path="/v1/chat/completions",
                operation="createChatCompletion",
                summary="Answer a conversation, in text, in speech, or with function calls.",
                handle=self.complete,
                body=(Content(JSON, ChatCompletionRequest, (_EXAMPLE,)),),
                answers=(Content(JSON, ChatCompletion), Content(EVENTS, ChatCompletionChunk)),
                refusals=(400, 408, 413, 415, 500, 503, 504),
            ),
        )

    async def complete(self, request: web.Request) -> web.StreamResponse:
        """Answer.

        Raises:
            ClientError: The request cannot be carried out.
            CapacityError: There is no room for it now.
            EngineError: A model failed.
        """
        services = self._services
        asked = await read_json(request, _DECODER, services.settings)
        model = services.catalogue.find(asked.model)
        wanted = check(asked, model)
        how, own_voice = _voice_of(model, wanted)
        prompt = await self._prompt(asked, model)
        prompt = msgspec.structs.replace(prompt, voice=own_voice)
        label = self._label(model, wanted)
        if asked.stream:
            options = asked.stream_options
            tells_usage = options is not None and bool(options.include_usage)
            async with event_stream(request, services.settings.keep_alive_s, DONE) as events:
                chunks = ChunkedAnswer(events, label, wanted, tells_usage=tells_usage)
                await chunks.finish(await self._turn(model, prompt, how, chunks).run())
                await self._keep(label, chunks.said)
            return events.response
        with closing(WholeAnswer(label, wanted)) as whole:
            ending = await self._turn(model, prompt, how, whole).run()
            answer = await whole.finish(ending)
        await self._keep(label, whole.said)
        # With speech it is long.
        body = await asyncio.to_thread(msgspec.json.encode, answer)
        return web.Response(body=body, content_type=JSON)

    async def _prompt(self, asked: ChatCompletionRequest, model: ServedModel) -> ChatRequest:
        said: dict[int, str] = {}
        for index, answer_id in spoken_references(asked):
            text = await self._answers.spoken(answer_id)
            if text is None:
                raise refused(
                    f"there is no spoken answer {shown(answer_id)}, or not any more; send its "
                    "transcript as content",
                    f"messages[{index}].audio.id",
                )
            said[index] = text
        # All that can be refused is refused before anything is heard.
        places = [place for place, _ in recordings(asked)]
        nothing: str | bytes = b"" if model.hears else ""
        self._chat_prompt(asked, model, dict.fromkeys(places, nothing), said)
        heard: dict[tuple[int, int], str | bytes] = {}
        if places and model.hears:
            heard.update(await self._hearing.read(recordings(asked)))
        elif places:
            pipeline = model.pipeline("transcription", "messages")
            heard.update(await self._hearing.hear(recordings(asked), pipeline))
        return self._chat_prompt(asked, model, heard, said)

    def _chat_prompt(
        self,
        asked: ChatCompletionRequest,
        model: ServedModel,
        heard: dict[tuple[int, int], str | bytes],
        said: dict[int, str],
    ) -> ChatRequest:
        return chat_prompt(
            asked,
            heard=heard,
            said=said,
            sees=model.sees,
            max_pixels=self._services.settings.max_picture_pixels,
            max_tokens=self._services.settings.max_output_tokens,
            seed=self._dice.getrandbits(_SEED_BITS),
            adapter=model.adapter,
        )

    def _turn(
        self, model: ServedModel, prompt: ChatRequest, how: Manner | None, sink: Sink
    ) -> Turn:
        services = self._services
        return Turn(services.engine, services.new_id, model.pipeline("chat"), prompt, how, sink)

    def _label(self, model: ServedModel, wanted: Wanted) -> Label:
        new_id = self._services.new_id
        now = int(self._services.clock.wall_time())
        completion_id = new_id("chatcmpl").replace("_", "-", 1)
        if not wanted.audio:
            return Label(completion_id, now, model.name)
        return Label(completion_id, now, model.name, new_id("audio"), now + KEPT_S)

    async def _keep(self, label: Label, said: str) -> None:
        if label.audio_id:
            await self._answers.keep_spoken(label.audio_id, said, label.expires_at)


def _voice_of(model: ServedModel, wanted: Wanted) -> tuple[Manner | None, str | None]:
    """Return who says the answer: a voice's pipeline, or the chat's own, in the second voice.

    Raises:
        ProtocolError: There is no such voice.
    """
    if not wanted.audio:
        return None, None
    if model.answers_aloud:
        return None, model_voice(model.voices, wanted.voice, "audio.voice")
    return manner(model, wanted.voice, 1.0, voice_param="audio.voice"), None
