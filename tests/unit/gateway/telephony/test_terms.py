from __future__ import annotations

from msgspec import UNSET

from duologue.gateway.client_secrets import BoundSession
from duologue.gateway.telephony.settings import TelephonySettings
from duologue.gateway.telephony.terms import combined, terms_of_call
from duologue.protocol.audio_formats import FormatPatch
from duologue.protocol.session_patch import (
    AudioInputPatch,
    AudioOutputPatch,
    AudioPatch,
    SessionPatch,
    TurnDetectionPatch,
)

SETTINGS = TelephonySettings(model="m", instructions="I.", voice="v", greeting="Hi.")
LINE = FormatPatch(type="audio/pcmu")


def test_settings_hold_where_nothing_is_more_particular() -> None:
    terms = terms_of_call(SETTINGS, None, {"other": "x"}, "audio/pcmu")
    assert (terms.model, terms.greeting) == ("m", "Hi.")
    assert terms.patch == SessionPatch(
        type="realtime",
        instructions="I.",
        output_modalities=("audio",),
        audio=AudioPatch(
            input=AudioInputPatch(format=LINE), output=AudioOutputPatch(format=LINE, voice="v")
        ),
    )


def test_what_the_secret_binds_wins_over_settings_and_parameters_over_both() -> None:
    detection = TurnDetectionPatch(type="server_vad")
    output = AudioOutputPatch(voice="w", format=FormatPatch(type="audio/pcm"))
    audio = AudioPatch(input=AudioInputPatch(turn_detection=detection), output=output)
    bound = BoundSession("b", SessionPatch(instructions="Bound.", audio=audio))
    terms = terms_of_call(SETTINGS, bound, {}, "audio/pcma")
    audio = terms.patch.audio
    assert (terms.model, terms.patch.instructions, audio.output.voice) == ("b", "Bound.", "w")
    assert audio.input.turn_detection == detection
    assert audio.output.format.type == audio.input.format.type == "audio/pcma"
    own = {"model": "p", "instructions": "Own.", "voice": "z", "greeting": ""}
    terms = terms_of_call(SETTINGS, bound, own, "audio/pcmu")
    assert (terms.model, terms.greeting, terms.patch.instructions) == ("p", "", "Own.")
    assert terms.patch.audio.output.voice == "z"
    assert terms.patch.audio.input.turn_detection == detection


def test_nothing_is_asked_for_where_nothing_is_set() -> None:
    terms = terms_of_call(TelephonySettings(greeting=""), None, {}, "audio/pcmu")
    assert (terms.model, terms.greeting) == (None, "")
    assert terms.patch.instructions is UNSET
    assert terms.patch.audio.output.voice is UNSET


def test_a_null_clears_and_an_absence_keeps() -> None:
    base = SessionPatch(instructions="a", tracing="auto")
    cleared = SessionPatch(instructions="a", tracing=None)
    assert combined(base, SessionPatch(tracing=None)) == cleared
