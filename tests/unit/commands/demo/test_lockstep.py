"""What is judged of two calls with a model that hears while it speaks."""

from __future__ import annotations

import argparse
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from duologue.clients.clip_device import ClipDevice
from duologue.commands.demo.command import register, run
from duologue.commands.demo.lockstep import Caller, judge, pipeline, write_model
from duologue.core.errors import ConfigError
from duologue.engines.pipeline import load_pipelines
from duologue.protocol.response_events import AudioDelta, AudioTranscriptDelta, ResponseDone
from tests.fakes.server import FakeAnswer


def sound(response_id: str, pcm: bytes = b"\x01\x00" * 24_000) -> AudioDelta:
    return AudioDelta(
        response_id=response_id, item_id="item", output_index=0, content_index=0, delta=pcm
    )


def words(text: str) -> AudioTranscriptDelta:
    return AudioTranscriptDelta(
        response_id="r", item_id="item", output_index=0, content_index=0, delta=text
    )


def done(name: str) -> ResponseDone:
    event = FakeAnswer(name).done("cancelled")
    assert isinstance(event, ResponseDone)
    return event


def caller(*events: object, speaking: bool = True) -> Caller:
    device = ClipDevice()
    if speaking:
        device.say(bytes(480))
    made = Caller(device)
    for event in events:
        made.on_event(event)
    return made


def good() -> tuple[Caller, Caller]:
    first = caller(sound("resp_a"), words("x"), done("a"), sound("resp_b"))
    second = caller(sound("resp_c", b"\x02\x00" * 24_000), words("y"))
    second.went_on = True
    return first, second


def failed(first: Caller, second: Caller) -> list[str]:
    return [check.what for check in judge((first, second)) if not check.passed]


def test_calls_that_went_well_are_found_good() -> None:
    first, second = good()
    assert failed(first, second) == []
    assert (first.seconds, second.seconds) == (2.0, 1.0)
    assert first.text == "x"


def test_what_went_wrong_is_named() -> None:
    first, second = good()
    first.on_event(sound("resp_a"))
    assert failed(first, second) == ["nothing of an answer comes after it was interrupted"]
    first, second = good()
    assert failed(first, replace(first, went_on=True)) == ["the calls know nothing of each other"]
    silent = caller(speaking=False)
    assert len(failed(silent, silent)) == 6


def test_the_pipeline_is_one_that_can_be_loaded(tmp_path: Path) -> None:
    path = tmp_path / "pipeline.yaml"
    path.write_text(str(pipeline()))
    (stage,) = load_pipelines([path])["moshi_tiny"].stages
    assert stage.runner == "streaming_lm"
    assert stage.settings["weights"] == "folder:moshi-tiny/model.safetensors"


def test_the_model_is_written_where_torch_is_and_else_said_to_need_it(tmp_path: Path) -> None:
    if find_spec("torch") and find_spec("sentencepiece"):
        assert write_model(tmp_path).exists()
        assert (tmp_path / "moshi-tiny/model.safetensors").exists()
    else:
        with pytest.raises(ConfigError, match=r"runs on torch, .*duologue\[torch\]"):
            write_model(tmp_path)


@pytest.mark.parametrize("option", [("--url", "localhost:1"), ("--keep",)])
def test_it_has_a_gateway_of_its_own(option: tuple[str, ...]) -> None:
    parser = argparse.ArgumentParser()
    register(parser.add_subparsers())
    with pytest.raises(ConfigError, match="has a gateway of its own"):
        run(parser.parse_args(["demo", "--model", "moshi-tiny", *option]))
