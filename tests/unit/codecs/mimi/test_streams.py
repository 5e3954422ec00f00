"""Frame by frame, in slots that know nothing of each other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx

from duologue.codecs.mimi import DecoderStream, EncoderStream, Mimi
from tests.golden.mimi.sizes import TINY

pytestmark = pytest.mark.torch

FRAMES = 160
"""Past the window of 125 frames, and once around the ring."""

SIZE = TINY.frame_samples


def noise(slots: int, frames: int = FRAMES, seed: int = 7) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return 0.3 * torch.randn(slots, frames * SIZE, generator=generator)


def decibels(got: Tensor, wanted: Tensor) -> float:
    return float(20 * torch.log10(wanted.norm() / (got - wanted).norm()))


def chunks(frames: list[int]) -> Iterator[slice]:
    begin = 0
    while begin < FRAMES:
        for each in frames:
            end = min(FRAMES, begin + each)
            if begin < end:
                yield slice(begin, end)
            begin = end


def snapshots_equal(one: EncoderStream | DecoderStream, slot: int, before: list[Tensor]) -> bool:
    now = one.snapshot(slot).tensors
    return all(torch.equal(a, b) for a, b in zip(now, before, strict=True))


@pytest.mark.parametrize("frames", [[1], [2], [1, 3, 2, 5], [40, 1]])
def test_any_chunking_into_frames_gives_what_the_whole_gives(
    codec: Mimi, frames: list[int]
) -> None:
    pcm = noise(2)
    codes = codec.encode(pcm)
    decoded = codec.decode(codes)
    on = torch.ones(2, dtype=torch.bool)
    encoder = codec.encoder(2, max_frames=max(frames))
    decoder = codec.decoder(2, max_frames=max(frames))
    parts = list(chunks(frames))
    coded = [encoder.step(pcm[:, each.start * SIZE : each.stop * SIZE], on) for each in parts]
    played = [decoder.step(codes[:, :, each], on) for each in parts]
    assert torch.equal(torch.cat(coded, 2), codes)
    assert decibels(torch.cat(played, 1), decoded) > 110


def test_slots_that_come_and_wait_as_they_like_each_give_what_they_give_alone(codec: Mimi) -> None:
    pcm = noise(3)
    codes = codec.encode(pcm)
    decoded = codec.decode(codes)
    encoder, decoder = codec.encoder(3), codec.decoder(3)
    generator = torch.Generator().manual_seed(8)
    done = [0, 0, 0]
    coded: list[list[Tensor]] = [[], [], []]
    played: list[list[Tensor]] = [[], [], []]
    while min(done) < FRAMES:
        active = torch.rand(3, generator=generator) < torch.tensor([1.0, 0.8, 0.5])
        active &= torch.tensor(done) < FRAMES
        at = [min(each, FRAMES - 1) for each in done]
        frame = torch.stack([pcm[s, n * SIZE : (n + 1) * SIZE] for s, n in enumerate(at)])
        frame_codes = torch.stack([codes[s, :, n : n + 1] for s, n in enumerate(at)])
        new_codes, new_pcm = encoder.step(frame, active), decoder.step(frame_codes, active)
        for slot in active.nonzero().flatten().tolist():
            coded[slot].append(new_codes[slot])
            played[slot].append(new_pcm[slot])
            done[slot] += 1
    for slot in range(3):
        assert torch.equal(torch.cat(coded[slot], 1), codes[slot])
        assert decibels(torch.cat(played[slot]), decoded[slot]) > 110


def test_a_masked_slot_is_untouched_bit_for_bit_and_gives_zeros(codec: Mimi) -> None:
    pcm = noise(2)
    codes = codec.encode(pcm)
    encoder, decoder = codec.encoder(2), codec.decoder(2)
    on, first_only = torch.tensor([True, True]), torch.tensor([True, False])
    for index in range(FRAMES):
        frame, frame_codes = pcm[:, index * SIZE :][:, :SIZE], codes[:, :, index : index + 1]
        if index % 20 == 19:  # also where the ring begins anew
            held = [list(each.snapshot(1).tensors) for each in (encoder, decoder)]
            assert encoder.step(frame, first_only)[1].eq(0).all()
            assert decoder.step(frame_codes, first_only)[1].eq(0).all()
            assert snapshots_equal(encoder, 1, held[0])
            assert snapshots_equal(decoder, 1, held[1])
        else:
            encoder.step(frame, on)
            decoder.step(frame_codes, on)


def test_what_others_say_changes_no_bit_of_a_slot(codec: Mimi) -> None:
    alone, among = codec.encoder(4), codec.encoder(4)
    alone_out, among_out = codec.decoder(4), codec.decoder(4)
    mine, others = noise(4), noise(4, seed=9)
    others[2] = mine[2]
    one, all_on = torch.tensor([False, False, True, False]), torch.ones(4, dtype=torch.bool)
    for index in range(20):
        at = slice(index * SIZE, (index + 1) * SIZE)
        a, b = alone.step(mine[:, at], one), among.step(others[:, at], all_on)
        assert torch.equal(a[2], b[2])
        assert torch.equal(alone_out.step(a, one)[2], among_out.step(b, all_on)[2])
    assert snapshots_equal(alone, 2, list(among.snapshot(2).tensors))
    assert snapshots_equal(alone_out, 2, list(among_out.snapshot(2).tensors))


def test_a_reset_slot_is_a_new_one_also_after_it_was_poisoned(codec: Mimi) -> None:
    pcm, on = noise(1, 6), torch.ones(1, dtype=torch.bool)
    encoder, decoder = codec.encoder(1), codec.decoder(1)
    fresh = [encoder.step(frame, on) for frame in pcm.split(SIZE, 1)]
    played = [decoder.step(each, on) for each in fresh]
    encoder.step(torch.full((1, SIZE), float("nan")), on)
    encoder.reset(0)
    decoder.reset(0)
    again = [encoder.step(frame, on) for frame in pcm.split(SIZE, 1)]
    assert torch.equal(torch.cat(again, 2), torch.cat(fresh, 2))
    repeated = [decoder.step(each, on) for each in again]
    assert torch.equal(torch.cat(repeated, 1), torch.cat(played, 1))


def test_a_restored_slot_goes_on_as_it_did_and_so_does_its_twin(codec: Mimi) -> None:
    pcm, on = noise(1).expand(2, -1), torch.ones(2, dtype=torch.bool)
    encoder = codec.encoder(2)
    frames = pcm.split(SIZE, 1)
    for frame in frames[:130]:
        encoder.step(frame, on)
    snapshot = encoder.snapshot(0)
    went_on = torch.cat([encoder.step(frame, on) for frame in frames[130:]], 2)
    encoder.reset(1)
    encoder.restore(0, snapshot)
    encoder.restore(1, snapshot)
    again = torch.cat([encoder.step(frame, on) for frame in frames[130:]], 2)
    assert torch.equal(again, went_on)
    assert torch.equal(again[1], went_on[0])


@pytest.mark.parametrize("direction", ["encoder", "decoder"])
def test_a_step_asks_no_tensor_for_its_value_and_leaves_state_where_it_is(
    codec: Mimi, direction: str
) -> None:
    stream: EncoderStream | DecoderStream
    if direction == "encoder":
        stream, given = codec.encoder(2), torch.zeros(2, SIZE)
    else:
        stream, given = codec.decoder(2), torch.zeros(2, TINY.codebooks, 1, dtype=torch.int64)
    on = torch.ones(2, dtype=torch.bool)
    state = stream._slots._tensors
    addresses = [tensor.data_ptr() for tensor in state]
    stream.step(given, on)
    assert [tensor.data_ptr() for tensor in stream._slots._tensors] == addresses
    # Tensors without values: a branch or a size that depended on one would raise.
    traced = make_fx(
        lambda given, on: stream.step(given, on), tracing_mode="fake", _allow_non_fake_inputs=True
    )
    assert traced(given, on).graph.find_nodes(op="output")


def test_snapshots_do_not_go_from_one_direction_to_the_other(codec: Mimi) -> None:
    with pytest.raises(ValueError, match="another shape"):
        codec.decoder(1).restore(0, codec.encoder(1).snapshot(0))


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((2, SIZE - 1), rf"is \[2, {SIZE - 1}\], must be \[2, n\], n a multiple of {SIZE}"),
        ((2, 0), "must be"),
        ((2, 3 * SIZE), f"up to {2 * SIZE}"),
        ((3, SIZE), r"must be \[2, n\]"),
    ],
)
def test_a_step_of_another_shape_is_refused(
    codec: Mimi, shape: tuple[int, int], message: str
) -> None:
    encoder = codec.encoder(2, max_frames=2)
    with pytest.raises(ValueError, match=message):
        encoder.step(torch.zeros(shape), torch.ones(2, dtype=torch.bool))


def test_a_mask_of_another_shape_or_type_and_too_few_codebooks_are_refused(codec: Mimi) -> None:
    decoder = codec.decoder(2)
    codes = torch.zeros(2, TINY.codebooks, 1, dtype=torch.int64)
    with pytest.raises(ValueError, match=r"active is \[2\] torch.int64, must be \[2\] torch.bool"):
        decoder.step(codes, torch.ones(2, dtype=torch.int64))
    with pytest.raises(ValueError, match=rf"must be \[2, {TINY.codebooks}, n\]"):
        decoder.step(codes[:, 1:], torch.ones(2, dtype=torch.bool))
    with pytest.raises(ValueError, match="at least one frame"):
        codec.decoder(1, max_frames=0)


def test_rows_may_be_slots_in_any_order_or_nobodys(codec: Mimi) -> None:
    pcm, codes = noise(3, 4), codec.encode(noise(3, 4))
    on = torch.ones(3, dtype=torch.bool)
    encoders, decoders = [codec.encoder(3) for _ in range(2)], [codec.decoder(3) for _ in range(2)]
    slots = torch.tensor([2, 3, 0, 1])
    for frame in range(4):
        part = pcm[:, frame * SIZE : (frame + 1) * SIZE]
        wanted = encoders[0].step(part, on)
        got = encoders[1].step_rows(part[[2, 0, 0, 1]], slots)
        assert torch.equal(got[[2, 3, 0]], wanted)
        part = codes[:, :, frame : frame + 1]
        wanted = decoders[0].step(part, on)
        got = decoders[1].step_rows(part[[2, 0, 0, 1]], slots)
        # A product of four rows may add up in another order than one of three.
        torch.testing.assert_close(got[[2, 3, 0]], wanted, rtol=1e-5, atol=1e-5)
