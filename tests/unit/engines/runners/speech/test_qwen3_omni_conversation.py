from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from transformers import PreTrainedTokenizerFast

from duologue.core.errors import ConfigError, EngineError
from duologue.engines.models.checkpoint_folder import CheckpointFolder
from duologue.engines.payloads import ChatMessage, ChatRequest, ToolCall, Tools, ToolSpec
from duologue.engines.runners.speech.qwen3_omni_conversation import Conversation, SensesSettings

pytestmark = [pytest.mark.speech, pytest.mark.timeout(120)]

Tiny = Callable[[str], Path]
WORDS_ONLY = SensesSettings(pictures=0, recordings_s=0)


def test_a_conversation_with_calls_has_the_tokens_that_the_library_gives_it(
    tiny_speech: Tiny,
) -> None:
    folder = tiny_speech("qwen3_omni")
    library = PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
    function = {"name": "look", "description": "Looks.", "parameters": {"type": "object"}}
    expected = library.apply_chat_template(
        [
            {"role": "user", "content": "What is there?"},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"function": {"name": "look", "arguments": {"at": 1}}}],
            },
            {"role": "tool", "content": "a cat"},
        ],
        chat_template=(folder / "chat_template.jinja").read_text(),
        tools=[{"type": "function", "function": function}],
        add_generation_prompt=True,
        return_dict=False,
    )
    talk = (
        ChatMessage("user", "What is there?"),
        ChatMessage("assistant", "", calls=(ToolCall("c", "look", '{"at":1}'),)),
        ChatMessage("tool", "a cat", call_id="c"),
    )
    tools = Tools((ToolSpec("look", "Looks.", '{"type":"object"}'),))
    with CheckpointFolder(folder) as checkpoint:
        read = Conversation(checkpoint, WORDS_ONLY).read(ChatRequest(talk, 5, tools=tools))
    assert read.ids == expected
    assert read.stands(torch.device("cpu")) is None


def test_a_template_that_leaves_a_picture_out_is_refused(tiny_speech: Tiny, tmp_path: Path) -> None:
    folder = tmp_path / "blind"
    shutil.copytree(tiny_speech("qwen3_omni"), folder)
    (folder / "chat_template.jinja").write_text("{{ messages[0].role }}")
    with CheckpointFolder(folder) as checkpoint:
        reader = Conversation(checkpoint, SensesSettings(pictures=0))
    heard = ChatRequest((ChatMessage("user", "", recordings=(bytes(9_000),)),), 5)
    with pytest.raises(EngineError, match="no place"):
        reader.read(heard)


@pytest.mark.parametrize(("without", "why"), [("template", "template"), ("signs", "audio_pad")])
def test_a_checkpoint_that_lacks_something_is_named(
    tiny_speech: Tiny, tmp_path: Path, without: str, why: str
) -> None:
    folder = tmp_path / "lacks"
    shutil.copytree(tiny_speech("qwen3_omni"), folder)
    if without == "template":
        (folder / "chat_template.jinja").unlink()
    else:
        file = folder / "tokenizer.json"
        file.write_text(file.read_text().replace("<|audio_pad|>", "<|sound_pad|>"))
    with CheckpointFolder(folder) as checkpoint, pytest.raises(ConfigError, match=why):
        Conversation(checkpoint, SensesSettings())
