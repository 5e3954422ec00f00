"""A person talks with the page: what is sent, what is heard, what an interruption does."""

from __future__ import annotations

import asyncio
import base64

import numpy as np
import pytest

from tests.browser import speaker_tap
from tests.browser.chromium import Page, WireMessage
from tests.browser.conftest import Browse
from tests.browser.voice import RATE_HZ, Pcm, silence, tone
from tests.patience import PATIENCE_S

RAW_MICROPHONE = '{"echoCancellation":false,"noiseSuppression":false,"autoGainControl":false}'
LAST_ANSWER = "[...document.querySelectorAll('#chat [data-speaker=duologue]')].at(-1)"


async def connect(page: Page) -> None:
    await page.click("#connect")
    await page.until("document.body.dataset.phase === 'live'")


async def of_type(page: Page, kind: str) -> list[WireMessage]:
    return [message for message in await page.messages() if message.type == kind]


async def answer_ids(page: Page) -> list[str]:
    """Return the ids of Duologue's spoken items, in order."""
    deltas = await of_type(page, "response.output_audio.delta")
    return list(dict.fromkeys(str(message.event["item_id"]) for message in deltas))


async def transcript_of(page: Page, item_id: str) -> str:
    deltas = await of_type(page, "response.output_audio_transcript.delta")
    return "".join(m.event["delta"] for m in deltas if m.event["item_id"] == item_id).strip()


async def sent_by_microphone(page: Page, chunks: int) -> list[Pcm]:
    """Return what was sent, once it is so many chunks."""
    async with asyncio.timeout(PATIENCE_S):
        while len(sent := await of_type(page, "input_audio_buffer.append")) < chunks:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    return [np.frombuffer(base64.b64decode(each.event["audio"]), dtype=np.int16) for each in sent]


def impurity(pcm: Pcm, frequency_hz: float) -> float:
    """Return what is left without the tone, as a share of the tone."""
    phase = 2 * np.pi * frequency_hz * np.arange(len(pcm)) / RATE_HZ
    waves = np.stack([np.sin(phase), np.cos(phase)], axis=1)
    fit, *_ = np.linalg.lstsq(waves, pcm.astype(np.float64), rcond=None)
    rest = pcm - waves @ fit
    return float(np.sqrt(np.mean(rest**2)) / max(np.hypot(*fit), 1.0))


def rms(pcm: Pcm) -> float:
    return float(np.sqrt(np.mean(pcm.astype(np.float64) ** 2)))


async def test_every_sample_of_the_answer_is_played_once_and_in_order(
    browse: Browse, question: tuple[Pcm, ...]
) -> None:
    async with browse(question) as page:
        await connect(page)
        await page.until(f"{LAST_ANSWER}?.dataset.state === 'heard'")
        (item_id,) = await answer_ids(page)
        audio = speaker_tap.sent_audio(page, item_id)
        recorded = await speaker_tap.recording(page)
        assert len(audio) > 3 * RATE_HZ
        assert speaker_tap.played_samples(recorded, audio) == len(audio)
        assert page.errors == []


async def test_speaking_cuts_the_answer_at_the_sample_that_the_server_is_told(
    browse: Browse, interruption: tuple[Pcm, ...]
) -> None:
    async with browse(interruption) as page:
        await connect(page)
        await page.until("document.querySelector('#chat [data-state=cut]')")
        await page.until(f"{LAST_ANSWER}?.dataset.state === 'heard'")
        (truncate, *_) = await of_type(page, "conversation.item.truncate")
        first, second, *_ = await answer_ids(page)
        audio = speaker_tap.sent_audio(page, first)
        recorded = await speaker_tap.recording(page)
        cut_at = truncate.event["audio_end_ms"] * RATE_HZ // 1000
        played = speaker_tap.played_samples(recorded, audio)

        assert truncate.event["item_id"] == first
        assert 0.5 * RATE_HZ < cut_at <= played < len(audio)
        # The rest of the millisecond, and a pause between words if the cut fell into one.
        assert np.max(np.abs(audio[cut_at + RATE_HZ // 1000 : played]), initial=0) < 200
        never_heard = audio[played:]
        loud = speaker_tap.first_loud(never_heard)
        probe = never_heard[loud : loud + speaker_tap.PROBE_SAMPLES]
        assert len(probe) == speaker_tap.PROBE_SAMPLES, "nothing was left to cut"
        assert speaker_tap.find(recorded, probe) is None, "old audio was played after the cut"

        started = [
            message.at_s
            for message in await of_type(page, "input_audio_buffer.speech_started")
            if message.at_s <= truncate.at_s
        ]
        assert truncate.at_s - started[-1] < 0.1, "silence came late"

        next_audio = speaker_tap.sent_audio(page, second)
        assert speaker_tap.played_samples(recorded, next_audio) == len(next_audio)


async def test_the_transcript_shows_what_was_heard_and_strikes_the_rest(
    browse: Browse, interruption: tuple[Pcm, ...]
) -> None:
    async with browse(interruption) as page:
        await connect(page)
        await page.until("document.querySelector('#chat .heard')?.textContent")
        await page.until("document.querySelector('#chat span.unheard')")
        await page.until("document.querySelector('#chat s.unheard')")
        (item_id, *_) = await answer_ids(page)
        heard = await page.text("#chat [data-state=cut] .heard")
        struck = await page.text("#chat [data-state=cut] s")
        assert f"{heard} {struck}" == await transcript_of(page, item_id)

        (truncate, *_) = await of_type(page, "conversation.item.truncate")
        audio_ms = 1000 * len(speaker_tap.sent_audio(page, item_id)) / RATE_HZ
        share_played = truncate.event["audio_end_ms"] / audio_ms
        share_heard = len(heard) / len(heard + struck)
        assert share_heard == pytest.approx(share_played, abs=0.25)

        who = "[...document.querySelectorAll('#chat li')].map((li) => li.dataset.speaker).join()"
        await page.until(f"({who}).startsWith('you,duologue,you')")
        mine = await page.text("#chat [data-speaker=you] .words")
        (said, *_) = await of_type(page, "conversation.item.input_audio_transcription.completed")
        assert mine == said.event["transcript"]
        assert heard in await page.evaluate("document.getElementById('announcer').textContent")


async def test_the_wait_is_shown_from_the_last_word_to_the_first_sound(
    browse: Browse, question: tuple[Pcm, ...]
) -> None:
    async with browse(question) as page:
        await connect(page)
        await page.until("!document.getElementById('latency').hidden")
        shown_s = float((await page.text("#latency-last")).removesuffix(" s"))
        (stopped, *_) = await of_type(page, "input_audio_buffer.speech_stopped")
        first_audio = (await of_type(page, "response.output_audio.delta"))[0]
        after_detection_s = first_audio.at_s - stopped.at_s
        assert after_detection_s < shown_s < after_detection_s + 1.5
        assert await page.evaluate("document.querySelectorAll('#latency-history li').length") == 1


async def test_the_microphone_reaches_the_wire_unharmed(browse: Browse) -> None:
    async with browse((tone(1000, 20),), settings=RAW_MICROPHONE) as page:
        await connect(page)
        chunks = await sent_by_microphone(page, 2 * RATE_HZ // 960)
        assert {len(chunk) for chunk in chunks} == {960}
        # A busy machine may drop a buffer between device and page, which spoils one window or two.
        windows = np.concatenate(chunks)[RATE_HZ : 2 * RATE_HZ].reshape(10, -1)
        spoilt = [impurity(window, 1000) for window in windows]
        assert np.median(spoilt) < 0.02, "the tone is missing, broken or out of tune"


async def test_the_microphone_keeps_the_wire_in_real_time(
    browse: Browse, question: tuple[Pcm, ...]
) -> None:
    async with browse(question) as page:
        await connect(page)
        await page.evaluate("new Promise((resolve) => setTimeout(resolve, 3000))")
        appends = await of_type(page, "input_audio_buffer.append")
        steady = appends[10:]  # the first ones come in a bunch: what was said while connecting
        span_s = steady[-1].at_s - steady[0].at_s
        assert span_s > 1.5
        assert (len(steady) - 1) * 0.04 == pytest.approx(span_s, abs=0.3)


async def test_a_muted_microphone_sends_silence_and_goes_on_sending(browse: Browse) -> None:
    async with browse((tone(440, 30),), settings=RAW_MICROPHONE) as page:
        await connect(page)
        await page.until("document.body.dataset.status === 'you'")
        before = len(await of_type(page, "input_audio_buffer.append"))
        await page.key("keyDown", "m", "KeyM")
        await page.until("document.getElementById('mute').getAttribute('aria-pressed') === 'true'")
        chunks = await sent_by_microphone(page, before + 20)
        assert rms(np.concatenate(chunks[:before])) > 1000
        assert rms(np.concatenate(chunks[-5:])) == 0


async def test_what_is_typed_interrupts_and_is_answered(
    browse: Browse, question: tuple[Pcm, ...]
) -> None:
    async with browse(question) as page:
        await connect(page)
        await page.until("document.querySelector('#chat .heard')?.textContent")
        await page.evaluate("document.getElementById('message').focus()")
        for character in "stop":
            await page.key("keyDown", character, "")
        await page.key("keyDown", "\r", "Enter")
        await page.until("document.querySelector('#chat s.unheard')")
        await page.until(f"{LAST_ANSWER}?.dataset.state === 'heard'")
        after_cut = [m.type for m in await page.messages() if m.sent and "append" not in m.type]
        assert after_cut[-4:] == [
            "response.cancel",
            "conversation.item.truncate",
            "conversation.item.create",
            "response.create",
        ]
        assert "stop" in await page.text("#chat")


async def test_push_to_talk_sends_only_while_the_key_is_down(browse: Browse) -> None:
    async with browse((tone(440, 60),), settings='{"turnTaking":"manual"}') as page:
        await connect(page)
        (update,) = await of_type(page, "session.update")
        assert update.event["session"]["audio"]["input"]["turn_detection"] is None
        await page.evaluate("new Promise((resolve) => setTimeout(resolve, 400))")
        assert await of_type(page, "input_audio_buffer.append") == []
        began_s = await page.evaluate("performance.now() / 1000")
        await page.key("keyDown", " ", "Space")
        await page.evaluate("new Promise((resolve) => setTimeout(resolve, 1000))")
        await page.key("keyUp", " ", "Space")
        held_s = await page.evaluate("performance.now() / 1000") - began_s
        await page.until("document.querySelector('#chat .heard')?.textContent")
        kinds = [m.type for m in await page.messages() if m.sent]
        assert kinds[-2:] == ["input_audio_buffer.commit", "response.create"]
        sent_s = 0.04 * kinds.count("input_audio_buffer.append")
        assert sent_s == pytest.approx(held_s + 0.2, abs=0.25)  # with 0.2 s from before the key


async def test_those_who_cannot_hold_a_button_press_it_twice(browse: Browse) -> None:
    async with browse((tone(440, 60),), settings='{"turnTaking":"manual"}') as page:
        await connect(page)
        await page.evaluate("document.getElementById('talk').focus()")
        for pressed in ("true", "false"):
            await page.key("keyDown", "\r", "Enter")
            await page.until(
                f"document.getElementById('talk').getAttribute('aria-pressed') === '{pressed}'"
            )
            await page.evaluate("new Promise((resolve) => setTimeout(resolve, 300))")
        kinds = [m.type for m in await page.messages() if m.sent]
        assert kinds[-2:] == ["input_audio_buffer.commit", "response.create"]


async def test_settings_change_the_session_in_mid_call(browse: Browse) -> None:
    async with browse((silence(60),)) as page:
        await connect(page)
        await page.click("#open-settings")
        await page.evaluate(
            """(() => {
                const { elements } = document.querySelector('#settings form');
                elements.instructions.value = 'Be brief.';
                elements.instructions.dispatchEvent(new Event('change', { bubbles: true }));
                document.querySelector('[name=turnTaking][value=server_vad]').click();
            })()"""
        )
        first, *_, last = [m.event["session"] for m in await of_type(page, "session.update")]
        assert "instructions" not in first
        assert first["audio"]["input"]["turn_detection"]["type"] == "semantic_vad"
        assert last["instructions"] == "Be brief."
        assert last["audio"]["input"]["turn_detection"]["type"] == "server_vad"


async def test_hanging_up_ends_everything_and_calling_again_begins_anew(
    browse: Browse, question: tuple[Pcm, ...]
) -> None:
    async with browse(question) as page:
        await connect(page)
        await page.until("document.querySelector('#chat .heard')?.textContent")
        await page.click("#hang-up")
        await page.until("document.body.dataset.phase === 'ended'")
        sent = len(await of_type(page, "input_audio_buffer.append"))
        blocks = await page.evaluate("tappedBlocks.length")
        await page.evaluate("new Promise((resolve) => setTimeout(resolve, 300))")
        assert len(await of_type(page, "input_audio_buffer.append")) == sent
        assert await page.evaluate("tappedBlocks.length") == blocks
        await page.click("#again")
        await page.until("document.body.dataset.phase === 'live'")
        await page.until(f"{LAST_ANSWER}?.dataset.state === 'speaking'")
        assert "remembers nothing" in await page.text("#chat [data-speaker=note]")
        assert page.errors == []
