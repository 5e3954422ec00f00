from __future__ import annotations

import pytest

from duologue.core.errors import ProtocolError
from duologue.gateway.catalogue import ServedModel
from duologue.gateway.speech.voices import Manner, aliases, manner, model_voice
from duologue.sessions.dialogue.plugin_config import OPENAI_VOICES

MODEL = ServedModel("m", {"speech": "tts"}, ("anna", "bert"), (0.5, 2.0))


def refusal(voice: str | None = None, speed: float = 1.0, model: ServedModel = MODEL) -> str:
    with pytest.raises(ProtocolError) as refused:
        manner(model, voice, speed)
    return f"{refused.value.param}: {refused.value.message}"


def test_a_client_that_names_no_voice_gets_the_first() -> None:
    assert manner(MODEL, None, 1.0) == Manner("tts", "anna")


def test_a_models_own_voice_is_taken_by_its_name() -> None:
    assert manner(MODEL, "bert", 1.0, "softly") == Manner("tts", "bert", instructions="softly")


def test_each_voice_of_stock_clients_means_one_of_the_models_own() -> None:
    assert len(OPENAI_VOICES) == 13
    heard = {model_voice(MODEL.voices, name) for name in OPENAI_VOICES}

    assert heard == {"anna", "bert"}


def test_a_model_that_has_such_a_voice_itself_keeps_it() -> None:
    assert model_voice(("nova", "anna"), "nova") == "nova"
    assert "nova" not in aliases(("nova", "anna"))


def test_c73_an_unknown_voice_is_told_with_those_that_there_are() -> None:
    message = refusal("karl")

    assert message.startswith("voice: there is no voice 'karl'")
    assert "anna, bert, alloy" in message


@pytest.mark.parametrize("speed", [0.2, 4.1, -1, float("nan"), float("inf")])
def test_a_speed_that_nobody_follows_is_refused(speed: float) -> None:
    assert refusal(speed=speed).endswith("it may be 0.25 to 4")


@pytest.mark.parametrize(
    ("speed", "spoken", "tempo"), [(1, 1, 1), (1.5, 1.5, 1), (4, 2, 2), (0.25, 0.5, 0.5)]
)
def test_what_a_voice_cannot_do_itself_is_stretched(
    speed: float, spoken: float, tempo: float
) -> None:
    how = manner(MODEL, None, speed)

    assert (how.speed, how.tempo) == (spoken, tempo)


def test_a_model_that_cannot_speak_says_what_it_can_do() -> None:
    mute = ServedModel("m", {"chat": "llm"}, ("default",))

    assert "cannot speak; it offers: chat" in refusal(model=mute)
