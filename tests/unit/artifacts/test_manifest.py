from __future__ import annotations

import re

import msgspec
import pytest
import yaml

from duologue.artifacts.errors import UnknownArtifact
from duologue.artifacts.manifest import Kind, load_manifest, parse_manifest
from duologue.artifacts.notices import licence_text

MANIFEST = load_manifest()
HEX = "0" * 64


def small(**changes: object) -> str:
    """A manifest of one artifact, in which the named keys of that artifact are replaced."""
    artifact: dict[str, object] = {
        "id": "a",
        "role": "vad",
        "description": "An artifact",
        "licence": {"model": "MIT"},
        "upstream": {"name": "org/a", "revision": "1"},
        "files": [
            {
                "name": "a.bin",
                "size_bytes": 1,
                "sha256": HEX,
                "parts": [{"wheel": "w", "member": "w/a.bin"}],
            }
        ],
        "attributions": [],
    }
    wheel = {"name": "w", "version": "1", "file": "w.whl", "size_bytes": 1, "sha256": HEX}
    return yaml.safe_dump(
        {
            "profiles": {"default": ["a"]},
            "wheels": [wheel],
            "artifacts": [{**artifact, **changes}],
        }
    )


def test_the_shipped_list_has_what_a_call_needs() -> None:
    roles = {MANIFEST.get(each).role for each in MANIFEST.profile("default")}
    assert roles == {"vad", "end of turn", "asr", "llm", "tts"}


def test_both_profiles_differ_in_the_language_model_alone() -> None:
    large, small_set = set(MANIFEST.profile("default")), set(MANIFEST.profile("small"))
    assert {MANIFEST.get(each).role for each in large ^ small_set} == {"llm", "llm (small)"}


@pytest.mark.parametrize("artifact_id", MANIFEST.ids)
def test_every_licence_of_an_artifact_ships_with_its_text(artifact_id: str) -> None:
    artifact = MANIFEST.get(artifact_id)
    assert artifact.licence.model in {each.licence for each in artifact.attributions}
    for attribution in artifact.attributions:
        assert len(licence_text(attribution.licence)) > 1000


@pytest.mark.parametrize("artifact_id", MANIFEST.ids)
def test_every_wheel_is_for_any_machine(artifact_id: str) -> None:
    for name in MANIFEST.get(artifact_id).wheel_names:
        assert MANIFEST.wheel(name).file.endswith("-py3-none-any.whl")


def test_the_joined_file_has_its_parts_in_order() -> None:
    (file,) = MANIFEST.get("qwen2.5-coder-0.5b-instruct-q4_k_m").files
    numbers = [re.findall(r"part(\d)", part.wheel)[0] for part in file.parts]
    assert numbers == ["1", "2", "3", "4", "5", "6"]
    assert file.size_bytes == 491_400_064


def test_an_unknown_id_is_answered_with_the_known_ones() -> None:
    with pytest.raises(UnknownArtifact, match="silero-vad"):
        MANIFEST.get("silero")
    with pytest.raises(UnknownArtifact, match="default, small"):
        MANIFEST.profile("huge")


def test_a_small_manifest_is_read() -> None:
    manifest = parse_manifest(small())
    assert manifest.get("a").size_bytes == 1
    assert manifest.get("a").kind is Kind.WEIGHTS
    assert manifest.get("a").wheel_names == ("w",)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"entry": "b.bin"}, "entry b.bin is none of its files"),
        ({"fallback": "b"}, "fallback b is no artifact"),
        ({"id": "b"}, "profile default names a"),
        ({"upstream": {"name": "org/a", "revision": "v1", "on_hub": True}}, "not a full commit"),
        (
            {"files": [{"name": "a.bin", "size_bytes": 1, "sha256": HEX}]},
            "neither packages nor a hub repository",
        ),
        (
            {
                "files": [
                    {
                        "name": "a.bin",
                        "size_bytes": 1,
                        "sha256": HEX,
                        "parts": [{"wheel": "v", "member": "m"}],
                    }
                ]
            },
            "wheel v is not in the list",
        ),
        ({"kind": "library"}, "needs a distribution"),
    ],
)
def test_a_manifest_that_does_not_hold_together_is_refused(
    changes: dict[str, object], complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        parse_manifest(small(**changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"id": "../a"},
        {"id": ".hidden"},
        {"surprise": 1},
        {"files": []},
        {"files": [{"name": "a/../../b", "size_bytes": 1, "sha256": HEX}]},
        {"files": [{"name": "a.bin", "size_bytes": 1, "sha256": "short"}]},
        {"files": [{"name": "a.bin", "size_bytes": 0, "sha256": HEX}]},
    ],
)
def test_names_that_leave_the_cache_and_malformed_values_are_refused(
    changes: dict[str, object],
) -> None:
    with pytest.raises(msgspec.ValidationError):
        parse_manifest(small(**changes))
