from __future__ import annotations

import pytest

from duologue.artifacts.manifest import load_manifest
from duologue.artifacts.notices import licence_text, notice_text


def test_a_notice_names_source_holder_and_licence_in_full() -> None:
    text = notice_text(load_manifest().get("qwen2.5-coder-0.5b-instruct-q4_k_m"))
    assert "Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF, revision ebb2015119c907b064c512bf" in text
    assert "Copyright 2024 Alibaba Cloud" in text
    assert licence_text("Apache-2.0").strip("\n") in text


def test_a_notice_has_each_licence_once() -> None:
    text = notice_text(load_manifest().get("whisper-tiny.en-ct2"))
    assert text.count("Permission is hereby granted") == 1
    assert "Copyright (c) 2022 OpenAI" in text
    assert "Copyright (c) 2023 SYSTRAN" in text


def test_a_licence_that_we_do_not_ship_is_an_error() -> None:
    with pytest.raises(FileNotFoundError):
        licence_text("WTFPL")
