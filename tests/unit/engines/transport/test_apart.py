from __future__ import annotations

import pytest

from duologue.core.errors import EngineError
from duologue.engines import framing
from duologue.engines.media_payloads import DrawImage, ImageData
from duologue.engines.messages import Apart, Append, Cancel, JobOutput, Open, Part
from duologue.engines.payloads import AudioChunk, Payload, TextDelta
from duologue.engines.policy_payloads import DecideActions
from duologue.engines.transport.apart import (
    LEAST_BYTES,
    LEAST_PART_BYTES,
    Lent,
    Outlook,
    may_be_large,
    split,
    whole,
)
from duologue.engines.transport.port import Handle, PayloadLost
from tests.fakes.object_store import ObjectStore

LARGE = b"\x01" * LEAST_BYTES
SMALL = b"\x02" * (LEAST_PART_BYTES - 1)
PICTURE = b"\x03" * (LEAST_BYTES // 3 + 1)


def image(data: bytes | Lent) -> ImageData:
    return ImageData(data, "png", 8, 8)  # type: ignore[arg-type]


def drawing(**fields: bytes) -> DrawImage:
    return DrawImage("a cat", 8, 8, steps=1, guidance=1.0, seed=1, **fields)


@pytest.fixture
def store() -> ObjectStore:
    return ObjectStore(max_bytes=2**20)


@pytest.mark.parametrize(
    "message",
    [
        Append("a", image(LARGE)),
        JobOutput("a", AudioChunk(LARGE, 16_000, 7)),
        Open("a", drawing(image=LARGE, mask=LARGE), input_ended=False, credit=3),
        Open("a", drawing(image=SMALL, mask=LARGE)),
        Append("a", DecideActions((LARGE, SMALL, LARGE), b"\0\0\0\0", "go", 1, 1)),
        Append("a", DecideActions((PICTURE, PICTURE, PICTURE), b"\0\0\0\0", "go", 1, 1)),
    ],
)
def test_what_is_taken_out_is_put_back(
    store: ObjectStore, message: Open | Append | JobOutput
) -> None:
    (apart,) = split([message], store.put)
    assert isinstance(apart, Apart)
    assert whole(apart, store.get) == message
    assert framing.decode_apart(framing.encode_apart(apart)[4:]) == apart
    assert len(framing.encode_apart(apart)) < LEAST_PART_BYTES + 500


def test_only_what_is_large_is_taken_out(store: ObjectStore) -> None:
    (apart,) = split([Append("a", DecideActions((LARGE, SMALL), b"", "", 1, 1))], store.put)
    assert isinstance(apart, Apart)
    assert apart.parts == (Part("images", 0, Handle("here", 0, 1, LEAST_BYTES)),)
    assert isinstance(apart.message, Append)
    assert apart.message.payload == DecideActions((b"", SMALL), b"", "", 1, 1)


def test_the_order_of_messages_is_kept(store: ObjectStore) -> None:
    small = [Append("a", TextDelta("x")), Cancel("b"), Open("c"), Append("a", image(SMALL))]
    large = Append("a", image(LARGE))
    pieces = list(split([*small, large, large, *small], store.put))
    assert pieces[0] == small
    assert pieces[3] == small
    assert [whole(piece, store.get) for piece in pieces[1:3] if isinstance(piece, Apart)] == [
        large,
        large,
    ]


def test_pictures_that_are_not_much_together_stay(store: ObjectStore) -> None:
    messages = [Append("a", DecideActions((PICTURE, PICTURE), b"", "", 1, 1))]
    assert list(split(messages, store.put)) == [messages]


def test_more_is_expected_for_a_while_after_something_large() -> None:
    outlook = Outlook()
    assert not outlook.is_large
    outlook.saw(found=True)
    for _ in range(15):
        outlook.saw(found=False)
    assert outlook.is_large
    outlook.saw(found=False)
    assert not outlook.is_large
    outlook.saw(found=False)
    assert not outlook.is_large


def test_what_finds_no_room_stays(store: ObjectStore) -> None:
    messages = [Append("a", image(LARGE))]
    assert list(split(messages, lambda data: None)) == [messages]


def test_a_payload_that_is_gone_is_an_error(store: ObjectStore) -> None:
    (apart,) = split([Append("a", image(LARGE))], store.put)
    assert isinstance(apart, Apart)
    store.free(apart.parts[0].handle)
    with pytest.raises(PayloadLost):
        whole(apart, store.get)


@pytest.mark.parametrize(
    ("payload", "field", "item"),
    [
        (image(b""), "media", -1),
        (image(b""), "nothing", -1),
        (image(b""), "data", 0),
        (DecideActions((b"",), b"", "lift it", 1, 1), "images", 1),
        (DecideActions((b"",), b"", "lift it", 1, 1), "images", -1),
    ],
)
def test_a_part_that_the_payload_does_not_have_is_an_error(
    store: ObjectStore, payload: Payload, field: str, item: int
) -> None:
    handle = store.put(LARGE)
    assert handle is not None
    with pytest.raises(EngineError, match="does not have"):
        whole(Apart(JobOutput("a", payload), (Part(field, item, handle),)), store.get)


def test_a_batch_of_frames_of_audio_is_not_worth_a_look() -> None:
    frames = [Append("a", AudioChunk(bytes(1_920), 24_000))] * 200
    assert not may_be_large(len(frames), len(framing.encode_messages(frames)))
    assert may_be_large(1, len(framing.encode_messages([Append("a", image(bytes(300_000)))])))


class TestLent:
    def test_it_comes_back_when_nobody_refers_to_it(self) -> None:
        back: list[Handle] = []
        handle = Handle("x", 1, 2, 3)
        lent = Lent(handle, back.append)
        message = Append("a", image(lent))
        assert len(lent) == 3
        del lent
        assert back == []
        del message
        assert back == [handle]

    def test_a_payload_weighs_the_same_wherever_its_bytes_lie(self) -> None:
        lent = Lent(Handle("x", 1, 2, len(LARGE)), lambda handle: None)
        assert image(lent).size_bytes() == image(LARGE).size_bytes() > len(LARGE)

    def test_it_is_never_a_part_of_a_message(self, store: ObjectStore) -> None:
        lent = Lent(Handle("x", 1, 2, 3), lambda handle: None)
        with pytest.raises(framing.NotWithin):
            framing.encode_messages([Append("a", image(lent))])

    def test_it_is_taken_out_however_small(self) -> None:
        lent = Lent(Handle("x", 1, 2, 3), lambda handle: None)
        (apart,) = split([Append("a", image(lent))], lambda data: lent.handle)
        assert isinstance(apart, Apart)
        assert apart.parts == (Part("data", -1, lent.handle),)
        assert whole(apart, lambda handle: b"abc") == Append("a", image(b"abc"))
