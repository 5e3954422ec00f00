from __future__ import annotations

from pathlib import Path

import pytest

from duologue.core.errors import ConfigError
from duologue.engines.pipeline import (
    BUILT_IN_FOLDER,
    Pipeline,
    StageSpec,
    load_pipelines,
    stage_keys,
)
from duologue.engines.ports import WorkClass
from duologue.engines.runners.registry import RunnerRegistry

GOOD = """
name: answer
stages:
  - name: words
    runner: script
    executor: inline
    replicas: 2
    max_jobs: 8
    queue: 4
    work_class: realtime
    env: {OMP_NUM_THREADS: "1"}
    settings: {reply: hello there}
    credit: 8
    edge: text_only
  - name: tones
    runner: tone
"""


def write(folder: Path, text: str, name: str = "answer.yaml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_becomes_a_typed_pipeline(tmp_path: Path) -> None:
    pipeline = load_pipelines([write(tmp_path, GOOD)])["answer"]
    words, tones = pipeline.stages
    assert words == StageSpec(
        name="words",
        runner="script",
        executor="inline",
        replicas=2,
        max_jobs=8,
        queue=4,
        work_class=WorkClass.REALTIME,
        env={"OMP_NUM_THREADS": "1"},
        settings={"reply": "hello there"},
        credit=8,
        edge="text_only",
    )
    assert tones.executor == "process"
    assert tones.work_class is WorkClass.INTERACTIVE


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("runner: tone", "runner: theremin", "no runner is called 'theremin'; there are .*tone"),
        ("edge: text_only", "edge: sideways", "no edge is called 'sideways'; there are forward"),
        ("runner: tone", "runner: tone\n    scheduler: psychic", "no scheduler .*'psychic'.*fifo"),
        ("executor: inline", "executor: inline\n    transport: slab", "'slab'.* auto, reference"),
        ("runner: tone", "runner: tone\n    transport: pigeon", "'pigeon'.* slab, zeromq, nixl"),
        ("executor: inline", "executor: moon", "no executor is called 'moon'; there are inline"),
        ("work_class: realtime", "work_class: someday", "someday"),
        ("credit: 8", "credits: 8", "credits"),
        ("name: answer", "name: answer\nextends: other", "no pipeline 'other'"),
        ("name: answer", "name: answer\nextends: tts\nspeed: 3", "speed"),
        ("name: answer", "name: answer\noutputs: wav", "'wav'; there are text, image, audio"),
        ("name: answer", "name: answer\noffer: {serves: [songs]}", "songs"),
        ("replicas: 2", "replicas: 0", "replicas"),
        ("replicas: 2", "max_input_bytes: 1000", "max_input_bytes"),
        ("name: tones", "name: words", "'words' .*exists twice"),
        ("name: answer", "name: Not A Name", "name"),
        ("    runner: tone", "", "runner"),
        ("replicas: 2", "replicas: 3\n    devices: [a, b]", "3 replicas cannot be shared out"),
        ('env: {OMP_NUM_THREADS: "1"}', "env: {OMP_NUM_THREADS: 1}", "OMP_NUM_THREADS|env"),
    ],
)
def test_what_is_unknown_or_out_of_bounds_is_refused_with_the_place(
    tmp_path: Path, old: str, new: str, complaint: str
) -> None:
    assert old in GOOD
    with pytest.raises(ConfigError, match=complaint):
        load_pipelines([write(tmp_path, GOOD.replace(old, new))])


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ("{folder: x, vae_tiling: true, vae_tile: 256}", ""),
        ("{folder: x, vae_tiles: 256}", "'painter'.*vae_tiles.*it takes .*vae_tile,"),
        ("{folder: x, vae_tiling: true, vae_tile: 100}", "multiple of 64"),
        ("{folder: x, vae_tile: 256}", "needs vae_tiling: true"),
        ("{}", "folder"),
    ],
)
def test_settings_of_a_runner_are_checked_where_its_library_is_not_needed(
    tmp_path: Path, settings: str, complaint: str
) -> None:
    text = f"name: art\nstages: [{{name: painter, runner: diffusion, settings: {settings}}}]"
    path = write(tmp_path, text)
    if not complaint:
        assert load_pipelines([path])["art"].stages[0].settings["vae_tile"] == 256
        return
    with pytest.raises(ConfigError, match=complaint):
        load_pipelines([path])


@pytest.mark.parametrize("text", ["{", "- a list", "name: empty\nstages: []", ""])
def test_what_is_no_pipeline_is_refused_with_the_file(tmp_path: Path, text: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ConfigError, match=str(path)):
        load_pipelines([path])


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nowhere"):
        load_pipelines([tmp_path / "nowhere.yaml"])


def test_a_later_file_replaces_an_earlier_pipeline_of_its_name(tmp_path: Path) -> None:
    first = write(tmp_path, GOOD)
    second = write(tmp_path, "name: answer\nstages: [{name: one, runner: tone}]", "mine.yaml")
    pipelines = load_pipelines([first, second])
    assert list(pipelines) == ["answer"]
    assert [stage.name for stage in pipelines["answer"].stages] == ["one"]


def test_runners_of_other_packages_can_be_named(tmp_path: Path) -> None:
    path = write(tmp_path, "name: x\nstages: [{name: x, runner: theirs}]")
    runners = RunnerRegistry({}, discover=lambda: {"theirs": "their.module:RUNNER"})
    assert load_pipelines([path], runners)["x"].stages[0].runner == "theirs"


def test_the_pipelines_that_ship_can_be_loaded() -> None:
    files = sorted(BUILT_IN_FOLDER.glob("*.yaml"))
    pipelines = load_pipelines(files)
    assert len(pipelines) == len(files)
    assert {path.stem for path in files} == pipelines.keys(), "a file is named after its pipeline"


def test_a_stage_is_named_after_its_pipeline_unless_it_is_its_only_one() -> None:
    one = Pipeline(name="asr", stages=(StageSpec(name="asr", runner="script"),))
    two = Pipeline(
        name="speech",
        stages=(StageSpec(name="words", runner="script"), StageSpec(name="tones", runner="tone")),
    )
    assert stage_keys([one, two]) == ("asr", "speech.words", "speech.tones")


@pytest.mark.parametrize(
    ("first", "second", "relays"),
    [
        ({}, {}, True),
        ({"edge": "text_only"}, {}, False),
        ({"executor": "inline"}, {}, False),
        ({}, {"executor": "inline"}, False),
        ({}, {"slab_mib": 0}, False),
        ({"slab_mib": 0}, {}, False),
        ({"transport": "link"}, {}, False),
        ({"transport": "zeromq"}, {}, False),
        ({"transport": "zeromq"}, {"transport": "zeromq"}, True),
        ({"transport": "zeromq"}, {"executor": "ray", "transport": "zeromq"}, False),
        ({"executor": "ray", "transport": "nixl"}, {"executor": "ray", "transport": "nixl"}, True),
    ],
)
def test_a_stage_hands_on_unread_what_the_next_one_can_read_where_it_lies(
    first: dict[str, object], second: dict[str, object], relays: bool
) -> None:
    stages = (
        StageSpec(name="a", runner="script", **first),
        StageSpec(name="b", runner="script", **second),
    )
    pipeline = Pipeline(name="p", stages=stages)
    assert (pipeline.relays(0), pipeline.relays(1)) == (relays, False)
