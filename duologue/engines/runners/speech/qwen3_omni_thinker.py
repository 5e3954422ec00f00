"""Qwen3-Omni's thinker: it reads, sees and hears a conversation, and answers in words.

Its talker says what it answers: it is handed each word as it is found, with all that the person
said. Of words it reads the embeddings and nothing else of the thinker, so their tokens are all that
travels; of pictures and recordings goes along what they have become in one of the thinker's layers.

Functions are called in the text of the answer, in the form that the checkpoint's chat template
asks for.

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
from duologue.engines.models.decoder.stack import DecoderStack, Tap, standing
from duologue.engines.payloads import ChatRequest, Payload, TokenUsage
from duologue.engines.runners.contract import Job, Step
from duologue.engines.runners.llm.chat_chunk import CONTEXT_EXCEEDED, REQUEST_REFUSED
from duologue.engines.runners.llm.requests import held_to_calls, take_request
from duologue.engines.runners.registry import RunnerType
from duologue.engines.runners.speech.qwen3_omni_conversation import Conversation, SensesSettings
from duologue.engines.runners.speech.qwen3_omni_prompt import OmniPrompt
from duologue.engines.runners.speech.saying import Saying
from duologue.engines.runners.speech.spelling import NOTHING_SPELT, Spelling, Spelt
from duologue.engines.runners.speech.torch_settings import dtype_of, use_threads

_MOST_LIKELY = 1024
"""Words that are drawn from; the others together have next to no chances."""

_WARM_UP = (1, 2, 3)


class ThinkerSettings(SensesSettings, frozen=True, kw_only=True):
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
        shift: How much later in order the next word comes than it stands, less than 0.
        hidden: What the next token is drawn from, [D]; ``None``: ``token`` must be read first.
    """

    slot: int
    request: ChatRequest
    read: int
    shift: int
    spelling: Spelling
    saying: Saying
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
            name: int(folder.config[f"{name}_token_id"]) for name in ("im_start", "im_end", "user")
        }
        self._settings = settings
        self._conversation = Conversation(folder, settings)
        self._tokenizer = self._conversation.tokenizer
        self._handed_on = int(folder.section("talker_config")["accept_hidden_layer"])
        self._free = list(range(settings.slots))

    def warm_up(self) -> None:
        """Read a few words."""
        with torch.inference_mode():
            self._read([0], [self._embedded([*_WARM_UP])], [0], [0])

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
        request = held_to_calls(take_request(job))
        _check(request)
        prompt = self._conversation.read(request)
        ids = prompt.ids
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
        spelling = Spelling(self._tokenizer, request.stop)
        thought = _Thought(slot, request, len(ids), prompt.shift, spelling, Saying(request.tools))
        tap = Tap(self._handed_on)
        thought.hidden = self._read_prompt(slot, prompt, tap)
        job.state = thought
        if request.voice is None:
            return Step()
        said, sensed = prompt.said_by(self._own["im_start"], self._own["user"], _known(tap.seen)[0])
        return Step((BeginAnswer(said, request.voice, sensed),))

    def _go_on(self, jobs: Sequence[Job], steps: dict[str, Step]) -> None:
        thoughts = [cast(_Thought, job.state) for job in jobs]
        behind = [each for each in thoughts if each.hidden is None]
        if behind:
            hidden = self._read(
                [each.slot for each in behind],
                [self._embedded([each.token]) for each in behind],
                [each.read + each.found - 1 for each in behind],
                [each.shift for each in behind],
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
        request, spelling, saying = thought.request, thought.spelling, thought.saying
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
        found, said = saying.take(given)
        if over:
            last_found, last_said = saying.finish()
            found, said = (*found, *last_found), (*said, *last_said)
        outputs = [*before, *found]
        if request.voice is not None and (said or over):
            outputs.append(AnswerWords(tuple(said), saying.chars, last=over))
        if over:
            outputs.append(TokenUsage(thought.read, thought.found, cut=cut))
        return Step(outputs, done=over)

    def _embedded(self, ids: Sequence[int]) -> Tensor:
        return F.embedding(torch.tensor(ids, device=self._words.device), self._words)

    def _read_prompt(self, slot: int, prompt: OmniPrompt, tap: Tap) -> Tensor:
        """Read a conversation; returns what its last token leads to."""
        inputs = prompt.inputs(self._embedded(prompt.ids))
        stands = prompt.stands(inputs.device)
        read = self._stack.step(
            inputs[None],
            [slot],
            [0],
            stands=None if stands is None else stands[None],
            added=[each[None] for each in prompt.added(inputs)],
            tap=tap,
        )
        return read[0, -1]

    def _read(
        self,
        slots: Sequence[int],
        inputs: Sequence[Tensor],
        starts: Sequence[int],
        shifts: Sequence[int],
    ) -> Sequence[Tensor]:
        """Read as many tokens of each row; returns what the last one of each leads to."""
        read = torch.stack(list(inputs))
        stands = standing(starts, shifts, read.shape[1], read.device)
        return list(self._stack.step(read, slots, starts, stands=stands)[:, -1])


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
    if request.schema:
        raise EngineError(
            "this model is held to no form, and so to no function: it calls one where it likes",
            code=REQUEST_REFUSED,
        )
    if request.adapter:
        raise EngineError("this model has no adapters", code=REQUEST_REFUSED)


def build(settings: ThinkerSettings) -> ThinkerRunner:
    """Load the thinker's text model."""
    use_threads(settings)
    with CheckpointFolder(Path(settings.folder), settings.device, dtype_of(settings)) as folder:
        return ThinkerRunner(folder, settings)


QWEN3_OMNI_THINKER = RunnerType.plain(ThinkerSettings, build)
