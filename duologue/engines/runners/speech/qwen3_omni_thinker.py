"""Qwen3-Omni's thinker for conversations in text: it answers, and its talker says what it answers.

The talker is handed each word as it is found, with all that the person said; in a conversation in
text it reads their embeddings and nothing else of the thinker, so tokens are all that travels.

Source:
    ``Qwen3OmniMoeForConditionalGeneration.generate`` of transformers; Xu et al., "Qwen3-Omni
    technical report" (2025), section 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, cast

import msgspec
import torch
from torch import Tensor
from torch.nn import functional as F

from duologue.core.errors import EngineError
from duologue.engines.answer_payloads import AnswerWords, BeginAnswer
from duologue.engines.models.checkpoint_folder import CheckpointFolder
from duologue.engines.models.code_talker.sampling import Draw, Taste
from duologue.engines.models.decoder.config import DecoderConfig
from duologue.engines.models.decoder.stack import DecoderStack
from duologue.engines.payloads import ChatRequest, Payload, TextDelta, TokenUsage
from duologue.engines.runners.contract import Job, Step
from duologue.engines.runners.llm.chat_chunk import CONTEXT_EXCEEDED, REQUEST_REFUSED
from duologue.engines.runners.llm.requests import refuse_pictures, take_request
from duologue.engines.runners.registry import RunnerType
from duologue.engines.runners.speech.loading import TorchSettings
from duologue.engines.runners.speech.spelling import NOTHING_SPELT, Spelling, Spelt
from duologue.engines.runners.speech.text_tokens import load_tokenizer
from duologue.engines.runners.speech.torch_settings import dtype_of, use_threads

_MOST_LIKELY = 1024
"""Words that are drawn from; the others together have next to no chances."""

_WARM_UP = (1, 2, 3)


class ThinkerSettings(TorchSettings, frozen=True, kw_only=True):
    """Settings of ``qwen3_omni_thinker``.

    Args:
        folder: The checkpoint, as for its talker.
        slots: How many answers there may be; ``max_jobs`` of the stage must not be more.
        positions: Longest conversation with its answer, in tokens.
    """

    folder: str
    slots: Annotated[int, msgspec.Meta(ge=1, le=1024)] = 8
    positions: Annotated[int, msgspec.Meta(ge=16, le=262_144)] = 4096


@dataclass(eq=False, slots=True)
class _Thought:
    """An answer that is being found.

    Args:
        read: Tokens of the conversation.
        hidden: What the next token is drawn from, [D]; ``None``: ``token`` must be read first.
    """

    slot: int
    request: ChatRequest
    read: int
    spelling: Spelling
    hidden: Tensor | None = None
    token: int = 0
    found: int = 0


class ThinkerRunner:
    """Answers conversations, a token of each a step."""

    def __init__(self, folder: CheckpointFolder, settings: ThinkerSettings) -> None:
        self.max_batch = settings.slots
        text = folder.section("thinker_config", "text_config")
        config = DecoderConfig.read(text)
        self._length = min(settings.positions, config.positions)
        self._stack = DecoderStack(
            folder, "thinker.model", config, slots=settings.slots, length=self._length
        )
        words = folder.tensor("thinker.model.embed_tokens.weight")
        self._words = words
        self._head = folder.tensor("thinker.lm_head.weight", *words.shape)
        self._own = {
            name: int(folder.config[f"{name}_token_id"])
            for name in ("im_start", "im_end", "system", "user", "assistant")
        }
        self._tokenizer = load_tokenizer(folder.path)
        # What a person writes is never a sign of the conversation's own.
        self._tokenizer.encode_special_tokens = True
        self._line = self._tokens("\n")
        self._free = list(range(settings.slots))

    def warm_up(self) -> None:
        """Read a few words."""
        with torch.inference_mode():
            self._read([0], [self._embedded([*_WARM_UP])], [0])

    def open(self, job: Job) -> None:
        """Nothing is taken before the conversation is there."""
        job.state = None

    def ready(self, job: Job) -> bool:
        """There is a conversation, or an answer to go on with."""
        return job.state is not None or bool(job.inputs)

    def step(self, jobs: Sequence[Job]) -> Sequence[Step]:
        """Find the next token of each."""
        steps: dict[str, Step] = {}
        with torch.inference_mode():
            for job in jobs:
                if job.state is None:
                    try:
                        steps[job.id] = self._begun(job)
                    except EngineError as exc:
                        steps[job.id] = Step(error=exc)
            going = [job for job in jobs if job.state is not None]
            if going:
                self._go_on(going, steps)
        return [steps[job.id] for job in jobs]

    def close(self, job: Job) -> None:
        """Free the slot."""
        thought = cast("_Thought | None", job.state)
        if thought is not None:
            self._free.append(thought.slot)
            job.state = None

    def _begun(self, job: Job) -> Step:
        """Read a conversation; returns what there is before its answer."""
        request = take_request(job)
        _check(request)
        ids, asked = self._prompt(request)
        if len(ids) >= self._length:
            raise EngineError(
                f"the conversation has {len(ids)} tokens; with an answer there is room for "
                f"{self._length}",
                code=CONTEXT_EXCEEDED,
            )
        if request.max_tokens == 0:
            # Reading ahead would need a slot that lasts.
            return Step((TokenUsage(0, 0),), done=True)
        if not self._free:
            raise EngineError(
                f"all {self.max_batch} slots of the thinker are taken: max_jobs of its stage must "
                "not be more than its slots"
            )
        slot = self._free.pop()
        self._stack.forget(slot)
        thought = _Thought(slot, request, len(ids), Spelling(self._tokenizer, request.stop))
        (thought.hidden,) = self._read([slot], [self._embedded(ids)], [0])
        job.state = thought
        if request.voice is None:
            return Step()
        return Step((BeginAnswer(tuple(asked), request.voice),))

    def _go_on(self, jobs: Sequence[Job], steps: dict[str, Step]) -> None:
        thoughts = [cast(_Thought, job.state) for job in jobs]
        behind = [each for each in thoughts if each.hidden is None]
        if behind:
            hidden = self._read(
                [each.slot for each in behind],
                [self._embedded([each.token]) for each in behind],
                [each.read + each.found - 1 for each in behind],
            )
            for each, made in zip(behind, hidden, strict=True):
                each.hidden = made
        scores = F.linear(torch.stack([_known(each.hidden) for each in thoughts]), self._head)
        likeliest = scores.argmax(dim=-1).tolist()
        for row, (job, thought) in enumerate(zip(jobs, thoughts, strict=True)):
            if thought.request.temperature > 0:
                thought.token = _drawn(scores[row : row + 1], thought)
            else:
                thought.token = likeliest[row]
            before = steps[job.id].outputs if job.id in steps else ()
            steps[job.id] = self._found(thought, before)

    def _found(self, thought: _Thought, before: Sequence[Payload]) -> Step:
        """Return what comes of the token that was found."""
        request, spelling = thought.request, thought.spelling
        thought.hidden = None
        ends = thought.token == self._own["im_end"]
        given = NOTHING_SPELT
        if not ends:
            thought.found += 1
            given = spelling.add(thought.token)
        full = thought.read + thought.found >= self._length
        cut = not ends and not spelling.ended and (thought.found >= request.max_tokens or full)
        over = ends or spelling.ended or cut
        if over:
            rest = spelling.finish()
            given = Spelt((*given.ids, *rest.ids), given.text + rest.text)
        outputs = list(before)
        if given.text:
            outputs.append(TextDelta(given.text))
        if request.voice is not None and (given.ids or over):
            outputs.append(AnswerWords(given.ids, spelling.chars, last=over))
        if over:
            outputs.append(TokenUsage(thought.read, thought.found, cut=cut))
        return Step(outputs, done=over)

    def _prompt(self, request: ChatRequest) -> tuple[list[int], list[int]]:
        """Return the tokens of a conversation, and those of what the person said in it."""
        own = self._own
        ids, asked = list[int](), list[int]()
        for message in request.messages:
            said = [own["im_start"], own[message.role], *self._line]
            said += [*self._tokens(message.content.strip()), own["im_end"], *self._line]
            ids += said
            if message.role == "user":
                asked += said
        return [*ids, own["im_start"], own["assistant"], *self._line], asked

    def _tokens(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def _embedded(self, ids: Sequence[int]) -> Tensor:
        return F.embedding(torch.tensor(ids, device=self._words.device), self._words)

    def _read(
        self, slots: Sequence[int], inputs: Sequence[Tensor], starts: Sequence[int]
    ) -> Sequence[Tensor]:
        """Read as many tokens of each row; returns what the last one of each leads to."""
        return list(self._stack.step(torch.stack(list(inputs)), slots, starts)[:, -1])


def _known(hidden: Tensor | None) -> Tensor:
    assert hidden is not None
    return hidden


def _drawn(scores: Tensor, thought: _Thought) -> int:
    request = thought.request
    count = min(_MOST_LIKELY, scores.shape[1])
    taste = Taste(temperature=request.temperature, top_k=count, top_p=request.top_p)
    draw = Draw.of([request.seed], [thought.found], scores.device)
    return int(draw.take(scores, taste, 0)[0])


def _check(request: ChatRequest) -> None:
    """Refuse what this model cannot do.

    Raises:
        EngineError: It is asked for.
    """
    refuse_pictures(request)
    calls = any(message.calls or message.role == "tool" for message in request.messages)
    if calls or request.tools.callable:
        raise EngineError("this model calls no functions", code=REQUEST_REFUSED)
    if request.schema:
        raise EngineError("this model is held to no form", code=REQUEST_REFUSED)
    if request.adapter:
        raise EngineError("this model has no adapters", code=REQUEST_REFUSED)


def build(settings: ThinkerSettings) -> ThinkerRunner:
    """Load the thinker's text model."""
    use_threads(settings)
    with CheckpointFolder(Path(settings.folder), settings.device, dtype_of(settings)) as folder:
        return ThinkerRunner(folder, settings)


QWEN3_OMNI_THINKER = RunnerType.plain(ThinkerSettings, build)
