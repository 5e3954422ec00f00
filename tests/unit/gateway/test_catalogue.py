from __future__ import annotations

import pytest

from duologue.core.errors import ProtocolError
from duologue.duplex_plugins.cascaded.plugin import create as cascaded
from duologue.duplex_plugins.echo import EchoPlugin
from duologue.engines.speech_offer import SpeechOffer
from duologue.gateway.catalogue import Catalogue, ServedModel, served_models, speaking_models
from tests.fakes.engine import FakeEngine

TALKER = ServedModel("talker", {"chat": "llm", "speech": "tts"}, ("one", "two"))
EARS = ServedModel("ears", {"transcription": "asr"}, ("default",))


def test_a_model_is_found_by_its_name_and_the_first_one_without() -> None:
    catalogue = Catalogue([TALKER, EARS])
    assert catalogue.find("ears") is EARS
    assert catalogue.find(None) is TALKER


@pytest.mark.parametrize("name", ["gpt-4o-mini-tts", "tts-1", "tts-1-hd", "whisper-1"])
def test_names_that_clients_have_built_in_mean_the_first_model(name: str) -> None:
    catalogue = Catalogue([TALKER, EARS], ["gpt-*", "tts-1*", "whisper-1"])
    assert catalogue.find(name) is TALKER


@pytest.mark.parametrize("name", ["claude", "", "GPT-4", "my-gpt-4"])
def test_other_names_are_told_which_there_are(name: str) -> None:
    with pytest.raises(ProtocolError, match="there are: talker, ears") as caught:
        Catalogue([TALKER, EARS], ["gpt-*"]).find(name)
    assert (caught.value.code, caught.value.param) == ("model_not_found", "model")


def test_a_model_says_what_it_cannot_do_and_what_it_can() -> None:
    assert TALKER.pipeline("speech") == "tts"
    with pytest.raises(
        ProtocolError, match=r"talker cannot transcribe.*offers: chat, speech"
    ) as it:
        TALKER.pipeline("transcription", "file")
    assert (it.value.code, it.value.param) == ("unsupported", "file")


def test_a_model_offers_what_its_plugin_names_and_the_engine_has() -> None:
    plugins = {"duologue": cascaded({"voices": ["a", "b"]}), "echo": EchoPlugin()}
    everything = FakeEngine(pipelines=("llm", "tts", "asr"))
    duologue, echo = served_models(plugins, everything, "asr")
    assert duologue.pipelines == {"chat": "llm", "speech": "tts", "transcription": "asr"}
    assert duologue.voices == ("a", "b")
    assert echo.pipelines == {"transcription": "asr"}
    mute, _ = served_models(plugins, FakeEngine(pipelines=("llm",)), "asr")
    assert mute.pipelines == {"chat": "llm"}
    assert not mute.can("speech")


def test_a_pipeline_that_answers_aloud_chats_and_speaks_no_text() -> None:
    offers = {
        "voice": SpeechOffer(voices=("a",)),
        "omni": SpeechOffer(voices=("ethan",), answers=True, sees=True, hears=True),
    }
    voice, omni = speaking_models(offers, FakeEngine(pipelines=("voice", "omni")))
    assert (dict(voice.pipelines), voice.answers_aloud) == ({"speech": "voice"}, False)
    assert (dict(omni.pipelines), omni.answers_aloud) == ({"chat": "omni"}, True)
    assert [(each.sees, each.hears) for each in (voice, omni)] == [(False, False), (True, True)]
    assert Catalogue([omni, voice], ["tts-1"]).find("tts-1", "speech") is voice


def test_names_of_vendors_mean_the_first_that_can_do_what_is_asked() -> None:
    catalogue = Catalogue([EARS, TALKER], ["tts-1"])
    assert catalogue.find("tts-1", "speech") is TALKER
    assert catalogue.find(None, "speech") is TALKER
    assert catalogue.find("ears", "speech") is EARS
    assert Catalogue([EARS]).find(None, "speech") is EARS


def test_a_pipeline_with_an_offer_is_a_model_that_speaks_and_holds_no_calls() -> None:
    offers = {
        "voice": SpeechOffer(voices=("anna", "bert"), fastest=2.0),
        "gone": SpeechOffer(voices=("a",)),
    }
    (model,) = speaking_models(offers, FakeEngine(pipelines=("voice",)))
    assert (model.name, model.voices, model.speeds) == ("voice", ("anna", "bert"), (1.0, 2.0))
    assert model.pipelines == {"speech": "voice"}
    assert not model.realtime
