from __future__ import annotations

import asyncio
import json
from itertools import pairwise

import pytest

from duologue.gateway.webrtc.call import MAX_BURST_FRAMES, MAX_PLAYOUT_MS
from duologue.gateway.webrtc.event_queue import MAX_WAITING_BYTES
from duologue.gateway.webrtc.settings import WebRtcSettings
from tests.unit.gateway.webrtc.call_scene import CallScene, loud
from tests.unit.gateway.webrtc.offers import only_audio, only_data


async def connected(sdp: str | None = None) -> CallScene:
    scene = CallScene() if sdp is None else CallScene(sdp)
    await scene.connect()
    return scene


async def answering(ms: int = 10_000) -> tuple[CallScene, str]:
    """A call in which an answer is being made."""
    scene = await connected()
    scene.ask()
    return scene, scene.sound(ms)


async def test_the_session_is_shown_as_soon_as_the_channel_is_open_and_not_before() -> None:
    scene = CallScene()
    await scene.call.answer(scene.library.backend, None)  # type: ignore[arg-type]
    scene.call.on_connected()
    assert scene.peer.messages == []
    scene.call.on_channel_open()
    assert scene.peer.types == ["session.created"]
    assert scene.peer.events[0]["event_id"] == "event_1"


async def test_c47_frames_leave_by_the_media_clock_whether_or_not_something_is_said() -> None:
    scene = await connected()
    scene.play(50)
    stamps = [timestamp for _, timestamp in scene.peer.audio]
    assert len(stamps) in (49, 50)  # the first may be due a tick later
    assert {b - a for a, b in pairwise(stamps)} == {960}
    assert not any(map(loud, scene.heard()))


async def test_c47_half_an_hour_has_no_drift() -> None:
    scene = await connected()
    scene.clock.advance(1800)
    stamps = [timestamp for _, timestamp in scene.peer.audio]
    assert 1800 * 50 - 2 <= stamps[-1] // 960 <= 1800 * 50


async def test_after_a_stall_only_the_latest_frames_are_sent_and_time_goes_on() -> None:
    scene = await connected()
    scene.play(10)
    scene.clock.stall(1.0)
    scene.play(1)
    stamps = [timestamp for _, timestamp in scene.peer.audio]
    assert stamps[-1] in (960 * 59, 960 * 60)
    assert len(stamps) <= 11 + MAX_BURST_FRAMES


async def test_speech_is_played_and_announced_but_not_sent_as_events() -> None:
    scene, response = await answering(200)
    scene.finish()
    scene.play(30)
    assert "response.output_audio.delta" not in scene.peer.types
    assert "response.output_audio.done" in scene.peer.types
    started, stopped = scene.peer.of("output_audio_buffer.started", "output_audio_buffer.stopped")
    assert started["type"] == "output_audio_buffer.started"
    assert started["response_id"] == stopped["response_id"] == response
    assert [loud(pcm) for pcm in scene.heard()].count(True) in (10, 11)


async def test_an_interruption_empties_the_track_within_a_frame() -> None:
    scene, response = await answering()
    scene.play(100)
    sent = len(scene.peer.audio)
    assert loud(scene.heard()[-1])
    scene.message("response.cancel")
    scene.play(3)
    assert [loud(pcm) for pcm in scene.heard(sent + 1)] == [False, False]
    (cleared,) = scene.peer.of("output_audio_buffer.cleared")
    assert cleared["response_id"] == response
    assert scene.peer.of("output_audio_buffer.stopped") == []


async def test_what_was_heard_is_known_to_the_frame() -> None:
    scene, _ = await answering()
    scene.play(73)
    scene.say(12)  # detector windows without audio on the line: the clock stands for the track
    (cut,) = scene.peer.of("conversation.item.truncated")
    played = [loud(pcm) for pcm in scene.heard()].count(True)
    assert abs(cut["audio_end_ms"] - 20 * played) <= 20
    assert cut["audio_end_ms"] % 20 == 0


async def test_clearing_the_output_is_silence_and_one_event() -> None:
    scene, response = await answering()
    scene.play(20)
    scene.message("output_audio_buffer.clear", event_id="e1")
    scene.play(2)
    assert not loud(scene.heard()[-1])
    assert [e["response_id"] for e in scene.peer.of("output_audio_buffer.cleared")] == [response]
    assert scene.peer.of("error") == []


async def test_a_clients_cut_ahead_of_playback_is_played_up_to_there() -> None:
    scene, _ = await answering(2000)
    scene.finish()
    scene.play(10)
    (item,) = scene.peer.of("response.output_item.added")
    scene.message(
        "conversation.item.truncate", item_id=item["item"]["id"], content_index=0, audio_end_ms=600
    )
    scene.play(60)
    assert [loud(pcm) for pcm in scene.heard()].count(True) in (30, 31)


async def test_c48_a_hole_in_an_answer_is_silence_and_the_rest_is_played() -> None:
    scene, response = await answering(2000)
    scene.play(600)
    scene.sound(2000)
    scene.finish()
    scene.play(150)
    loudness = [loud(pcm) for pcm in scene.heard()]
    assert 198 <= loudness.count(True) <= 204
    assert loudness[300:500] == [False] * 200
    (stopped,) = scene.peer.of("output_audio_buffer.stopped")
    assert stopped["response_id"] == response
    assert len(scene.peer.of("output_audio_buffer.started")) == 1


async def test_audio_that_comes_in_is_the_sessions_input() -> None:
    scene = await connected()
    scene.call.on_audio(bytes(2 * 24 * 600))
    scene.message("input_audio_buffer.commit")
    assert scene.machine.listening.audio_ms() in (
        597,
        598,
        599,
        600,
    )  # the rate converter keeps some back
    assert "input_audio_buffer.committed" in scene.peer.types


@pytest.mark.parametrize(
    ("message", "code", "param"),
    [
        ({"type": "input_audio_buffer.append", "audio": "AAAA"}, "unsupported", "type"),
        (
            {
                "type": "session.update",
                "session": {
                    "type": "realtime",
                    "audio": {"input": {"format": {"type": "audio/pcmu"}}},
                },
            },
            "unsupported",
            "session.audio.input.format",
        ),
        ({"type": "nonsense"}, "unknown_event_type", "type"),
    ],
)
async def test_a_mistake_is_one_error_and_the_call_goes_on(
    message: dict[str, object], code: str, param: str
) -> None:
    scene = await connected()
    scene.call.on_message(json.dumps({**message, "event_id": "e1"}).encode())
    (error,) = scene.peer.of("error")
    assert (error["error"]["code"], error["error"]["param"]) == (code, param)
    assert error["error"]["event_id"] == "e1"
    scene.message("session.update", session={"type": "realtime", "instructions": "Be kind."})
    assert "session.updated" in scene.peer.types


async def test_a_call_without_audio_is_a_conversation_in_messages() -> None:
    """C71: an offer without audio."""
    scene = await connected(only_data())
    scene.message("input_audio_buffer.append", audio="AAAA" * 7200)
    scene.message("input_audio_buffer.commit")
    scene.message("response.create")
    scene.transcribe("hello")
    scene.sound(200)
    scene.finish()
    scene.clock.advance(1)
    assert "response.output_audio.delta" in scene.peer.types
    assert "output_audio_buffer.started" not in scene.peer.types
    assert scene.peer.audio == []
    scene.message("output_audio_buffer.clear")
    assert scene.peer.of("error")[-1]["error"]["code"] == "unsupported"


async def test_a_call_without_a_data_channel_can_talk() -> None:
    scene = await connected(only_audio())
    scene.call.on_audio(bytes(2 * 24 * 600))
    observer = scene.call.observe()
    assert [type(d.event).__name__ for d in observer.pull(1).deliveries] == ["SessionCreated"]


async def test_a_channel_that_takes_nothing_holds_the_session_back_within_a_bound() -> None:
    scene = await connected()
    scene.peer.stuck = True
    for number in range(4000):
        scene.message("conversation.item.retrieve", item_id=f"item_{number}")
    writer = scene.call._writer
    assert writer is not None
    assert MAX_WAITING_BYTES <= writer.waiting_bytes < MAX_WAITING_BYTES + 16 * 1024
    before = len(scene.peer.messages)
    scene.peer.stuck = False
    scene.call.on_drained()
    assert len(scene.peer.messages) > before
    assert writer.waiting_bytes == 0


async def test_speech_is_not_taken_far_ahead_of_its_being_played() -> None:
    scene, _ = await answering(9_000)
    playout = scene.call.playout
    assert playout is not None
    for _ in range(400):
        scene.play(1)
        assert playout.waiting_ms <= MAX_PLAYOUT_MS + 200


async def test_a_session_that_ends_says_its_last_words_and_closes_the_connection() -> None:
    scene = await connected()
    running = asyncio.ensure_future(scene.call.run())
    await asyncio.sleep(0)
    scene.ask()
    scene.session.close("session_expired")
    await running
    assert scene.peer.types[-1] == "error" or "response.done" in scene.peer.types
    assert scene.peer.closed == 1
    sent = len(scene.peer.audio)
    scene.play(10)
    assert len(scene.peer.audio) == sent


async def test_a_peer_that_leaves_ends_the_session() -> None:
    scene = await connected()
    running = asyncio.ensure_future(scene.call.run())
    await asyncio.sleep(0)
    scene.call.on_gone("closed")
    await running
    assert len(scene.manager) == 0
    assert scene.peer.closed == 1


async def test_a_peer_that_never_connects_is_given_up() -> None:
    scene = CallScene(settings=WebRtcSettings(connect_timeout_s=0.01))
    await scene.call.answer(scene.library.backend, None)  # type: ignore[arg-type]
    await scene.call.run()
    assert len(scene.manager) == 0
    assert scene.peer.closed == 1
    assert scene.machine.ended == "peer_not_connected"


async def test_c71_a_connection_that_is_lost_may_come_back_within_its_time() -> None:
    scene = await connected()
    scene.call.on_lost()
    scene.play(3 * 50)
    scene.call.on_connected()
    scene.play(20 * 50)
    assert len(scene.manager) == 1
    scene.call.on_lost()
    scene.play(11 * 50)
    assert len(scene.manager) == 0


async def test_one_who_looks_on_sees_what_the_caller_sees_and_may_speak() -> None:
    scene = await connected()
    observer = scene.call.observe()
    first = observer.pull(1).deliveries
    assert [(d.seq, type(d.event).__name__) for d in first] == [(1, "SessionCreated")]
    observer.offer(scene.call._decode(b'{"type":"input_audio_buffer.clear"}'))
    assert scene.peer.types[-1] == "input_audio_buffer.cleared"
    assert [type(d.event).__name__ for d in observer.pull(1).deliveries] == ["AudioCleared"]
    scene.call.end("closed")


async def test_no_room_in_the_session_costs_audio_and_nothing_else() -> None:
    scene = await connected()
    for _ in range(400):
        scene.call.on_audio(bytes(2 * 24 * 3000))
    assert scene.call.refused_audio > 0
    assert len(scene.manager) == 1
