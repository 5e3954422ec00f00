from __future__ import annotations

from duologue.engines import framing
from duologue.engines.media_payloads import ImageData
from duologue.engines.messages import Apart, JobOutput, Report
from duologue.engines.payloads import TextDelta
from duologue.engines.transport.port import Data, Handle
from duologue.engines.transport.report_encoder import ReportEncoder


class Puts:
    """Keeps what is put, up to a number."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.there: list[bytes] = []

    def put(self, data: Data) -> Handle | None:
        if len(self.there) == self.room:
            return None
        self.there.append(bytes(data))
        return Handle("here", len(self.there), 1, len(data))


def bodies(frames: bytes) -> list[bytes]:
    return framing.FrameReader().feed(frames)


def test_small_reports_are_one_frame_and_nothing_is_put() -> None:
    puts = Puts(8)
    report = Report([JobOutput("a", TextDelta("hello"))], 0.25)
    (body,) = bodies(ReportEncoder(puts.put).encode(report))
    assert framing.decode_report(body) == report
    assert puts.there == []


def test_what_is_large_is_put_and_the_rest_keeps_its_order() -> None:
    puts = Puts(8)
    large = JobOutput("a", ImageData(b"x" * 300_000, "png", 8, 8))
    small = JobOutput("a", TextDelta("before"))
    apart, before = None, []
    for body in bodies(ReportEncoder(puts.put).encode(Report([small, large], 0.25))):
        if body[0] == framing.APART:
            apart = framing.decode_apart(body)
            assert before[0].messages == [small]
        else:
            before.append(framing.decode_report(body))
    assert isinstance(apart, Apart)
    assert puts.there == [b"x" * 300_000]
    assert [each.step_s for each in before] == [0.0, 0.25]


def test_what_finds_no_room_stays_within() -> None:
    report = Report([JobOutput("a", ImageData(b"x" * 300_000, "png", 8, 8))])
    (body,) = bodies(ReportEncoder(Puts(0).put).encode(report))
    assert framing.decode_report(body) == report
