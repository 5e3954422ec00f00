"""The language model that ships does what every one does."""

from __future__ import annotations

import pytest

from duologue.artifacts.references import resolve_references
from duologue.artifacts.settings import ArtifactSettings
from duologue.artifacts.store import Store
from duologue.engines.pipeline import BUILT_IN_FOLDER, load_pipelines
from duologue.engines.runners.registry import RunnerRegistry
from tests.fakes.jobs import Jobs
from tests.unit.engines.runners.llm.chat_contract import CONTEXT_TOKENS, ChatContract

pytestmark = [pytest.mark.models, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def jobs() -> Jobs:
    (stage,) = load_pipelines([BUILT_IN_FOLDER / "llm.yaml"])["llm"].stages
    settings = resolve_references(stage.settings, Store(ArtifactSettings()))
    settings |= {"slots": 8, "slot_tokens": CONTEXT_TOKENS}
    jobs = Jobs(patience_s=120)
    jobs.runner = RunnerRegistry.installed().build(stage.runner, settings, jobs.wake).runner
    jobs.runner.warm_up()
    return jobs


class TestLlamaCpp(ChatContract):
    pass
