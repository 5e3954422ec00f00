from __future__ import annotations

import msgspec
import pytest
from wyoming.event import Event
from wyoming.info import Info as TheirInfo

from duologue.core.errors import ProtocolError
from duologue.gateway.catalogue import Catalogue, ServedModel
from duologue.gateway.wyoming.events import WyomingEvent
from duologue.gateway.wyoming.messages import AskedSpeech, AskedVoice, AudioForm, info_of, typed

MODEL = ServedModel(
    "duologue", {"speech": "tts", "transcription": "asr"}, ("anna", "bert"), languages=("en",)
)


def test_the_info_is_what_others_read() -> None:
    info = TheirInfo.from_event(Event("info", msgspec.to_builtins(info_of(Catalogue([MODEL])))))

    assert [voice.name for voice in info.tts[0].voices] == ["anna", "bert"]
    assert info.tts[0].supports_synthesize_streaming
    assert info.asr[0].models[0].languages == ["en"]
    assert info.asr[0].installed


def test_what_a_model_cannot_do_is_not_offered() -> None:
    info = info_of(Catalogue([ServedModel("mute", {"chat": "llm"}, ("x",))]))

    assert (list(info.asr), list(info.tts)) == ([], [])


def test_data_becomes_a_message() -> None:
    event = WyomingEvent("synthesize", {"text": "Hi.", "voice": {"name": "anna", "speaker": "x"}})

    assert typed(event, AskedSpeech) == AskedSpeech("Hi.", AskedVoice("anna"))


@pytest.mark.parametrize("data", [{}, {"rate": "fast", "width": 2, "channels": 1}])
def test_other_data_is_refused_with_the_field(data: dict[str, object]) -> None:
    with pytest.raises(ProtocolError) as refused:
        typed(WyomingEvent("audio-start", data), AudioForm)
    assert refused.value.param == "rate"
