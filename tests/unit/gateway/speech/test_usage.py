from __future__ import annotations

from duologue.gateway.speech.usage import heard_usage, spoken_usage, text_tokens


def test_speaking_reads_text_and_makes_audio() -> None:
    usage = spoken_usage("12345678", 1.01)

    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (2, 21, 23)
    assert usage.input_token_details.text_tokens == 2


def test_hearing_reads_audio_and_makes_text() -> None:
    usage = heard_usage(2.0, "1234", "12345")

    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (21, 2, 23)
    assert usage.input_token_details.audio_tokens == 20


def test_no_text_is_no_token() -> None:
    assert text_tokens("") == 0
