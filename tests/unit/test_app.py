"""The composition root: settings in, a running server out."""

from __future__ import annotations

import asyncio
import errno
import json
import re
import socket
import sys
from pathlib import Path

import aiohttp
import msgspec
import pytest

from duologue.app import configured_pipelines, running_app, why_not_listening
from duologue.artifacts.errors import ArtifactMissing
from duologue.artifacts.settings import ArtifactSettings
from duologue.core.errors import CapacityError, ConfigError
from duologue.engines.pools.replica import ReplicaChange
from duologue.engines.settings import EngineSettings
from duologue.gateway.settings import GatewaySettings
from duologue.sessions.machine import SessionMachine
from duologue.sessions.recording.recording import decode_recording
from duologue.sessions.session import Session
from duologue.settings import ModelSettings, Settings
from duologue.telemetry import decode_flight
from duologue.telemetry.settings import TelemetrySettings
from tests.fakes.call import FakeConnection
from tests.fakes.small_gateway import small_settings


def changed(settings: Settings, **sections: object) -> Settings:
    return settings.model_copy(update=sections)


async def test_a_server_that_runs_answers_and_one_that_has_stopped_does_not() -> None:
    loaded: list[ReplicaChange] = []
    async with aiohttp.ClientSession() as http:
        async with running_app(small_settings(), progress=loaded.append) as app:
            async with http.get(f"{app.url}/ready") as ready:
                assert ready.status == 200
            async with http.get(f"{app.url}/v1/models") as models:
                named = [model["id"] for model in (await models.json())["data"]]
            assert named[:2] == ["scripted", "echo"]
            async with http.ws_connect(f"{app.url}/v1/realtime?model=echo") as call:
                greeting = json.loads(await call.receive_str())
                assert greeting["type"] == "session.created"
                assert len(app.sessions) == 1
        assert loaded != []
        with pytest.raises(aiohttp.ClientConnectorError):
            await http.get(app.url)


async def read_to_the_end(socket: aiohttp.ClientWebSocketResponse) -> int | None:
    async for _ in socket:
        pass
    return socket.close_code


@pytest.mark.parametrize("path", ["/v1/duplex?model=echo&autostart=0", "/v1/realtime?queue=1"])
async def test_who_has_no_session_yet_holds_up_no_server_that_stops(path: str) -> None:
    settings = small_settings()
    patient = {"queued_calls": 1, "close_timeout_s": 60.0}  # longer than this test may last
    settings = changed(
        settings,
        gateway=settings.gateway.model_copy(update=patient),
        sessions=settings.sessions.model_copy(update={"max_sessions": 1}),
    )
    async with aiohttp.ClientSession() as http, asyncio.TaskGroup() as group:
        async with running_app(settings) as app:
            if "queue" in path:
                app.sessions.open("echo")
            waiting = await http.ws_connect(f"{app.url}{path}")
            if "queue" in path:
                assert (await waiting.receive_json())["type"] == "session.queued"
            goodbye = group.create_task(read_to_the_end(waiting))
        assert await goodbye == 1001


async def test_calls_that_go_on_may_finish_while_the_server_stops() -> None:
    settings = small_settings()
    gateway = settings.gateway.model_copy(update={"drain_timeout_s": 60.0})
    async with running_app(changed(settings, gateway=gateway)) as app:
        client = call(app.sessions.open(None))
        refused: list[CapacityError] = []

        def hang_up() -> None:
            try:
                app.sessions.open(None)
            except CapacityError as exc:
                refused.append(exc)
            client.session.close("closed")

        # In the first moment of the end.
        asyncio.get_running_loop().call_soon(hang_up)
    assert client.ended == "closed"
    assert [exc.code for exc in refused] == ["server_shutting_down"]


async def test_nobody_waits_for_calls_where_there_is_no_time() -> None:
    settings = small_settings()
    gateway = settings.gateway.model_copy(update={"drain_timeout_s": 3600.0})
    stop_now = asyncio.Event()
    async with running_app(changed(settings, gateway=gateway), stop_now=stop_now) as app:
        client = call(app.sessions.open(None))
        stop_now.set()
    assert client.ended == "server_shutting_down"


async def test_a_port_that_is_taken_is_named_with_the_way_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        settings = changed(small_settings(), gateway=GatewaySettings(port=port))
        with pytest.raises(ConfigError, match=rf"127\.0\.0\.1:{port}.*--gateway\.port"):
            async with running_app(settings):
                pass


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.EADDRINUSE, "another program does.*--gateway.port"),
        (errno.EACCES, "below 1024.*--gateway.port"),
        (errno.EADDRNOTAVAIL, "not an address of this machine.*--gateway.host"),
    ],
)
def test_why_nobody_can_be_listened_to_names_the_setting_to_change(
    number: int, advice: str
) -> None:
    said = why_not_listening(GatewaySettings(port=80), OSError(number, "no"))
    assert re.match(rf"cannot listen on 127\.0\.0\.1:80: .*{advice}", said)


async def test_a_plugin_that_there_is_not_is_refused_before_anything_starts() -> None:
    models = (ModelSettings(name="parrot", plugin="parrot"),)
    with pytest.raises(ConfigError, match="parrot"):
        async with running_app(changed(small_settings(), models=models)):
            pass


async def test_the_last_seconds_of_a_session_that_crashed_are_written_where_settings_say(
    tmp_path: Path,
) -> None:
    telemetry = TelemetrySettings(flight_folder=tmp_path)
    async with running_app(changed(small_settings(), telemetry=telemetry)) as app:
        crash(app.sessions.open("echo"))
    await asyncio.get_running_loop().shutdown_default_executor()
    (file,) = list(tmp_path.iterdir())  # noqa: ASYNC240
    assert decode_flight(file.read_bytes()).reason == "ZeroDivisionError"


async def test_without_a_folder_a_crash_leaves_no_file() -> None:
    async with running_app(small_settings()) as app:
        session = app.sessions.open("echo")
        crash(session)
        assert app.sessions.get(session.id) is None


class Broken:
    """A machine that breaks when its time has come, as a bug would break it."""

    def __init__(self, machine: SessionMachine) -> None:
        self._machine = machine

    def __getattr__(self, name: str) -> object:
        return getattr(self._machine, name)

    def on_timer(self, now: float) -> list[object]:
        raise ZeroDivisionError


def crash(session: Session) -> None:
    session.machine = Broken(session.machine)  # type: ignore[assignment]
    session.on_timer()


def call(session: Session) -> FakeConnection:
    client = FakeConnection(session)
    session.attach(client)
    return client


def test_pipelines_that_ship_are_found_by_name() -> None:
    assert set(configured_pipelines(small_settings())) == {"scripted"}


def test_a_pipeline_that_there_is_not_is_refused() -> None:
    engine = EngineSettings(pipelines=("nonsense",))
    with pytest.raises(ConfigError, match=r"there is no pipeline 'nonsense'; there are asr.*vad"):
        configured_pipelines(changed(small_settings(), engine=engine))


def test_weights_that_are_not_there_are_missed_before_a_worker_starts(tmp_path: Path) -> None:
    engine = EngineSettings(pipelines=("vad",))
    artifacts = ArtifactSettings(cache_dir=tmp_path)
    with pytest.raises(ArtifactMissing, match="duologue models pull"):
        configured_pipelines(changed(small_settings(), engine=engine, artifacts=artifacts))


def test_all_weights_that_are_missing_are_named_with_one_command(tmp_path: Path) -> None:
    engine = EngineSettings(pipelines=("vad", "asr"))
    settings = changed(
        small_settings(), engine=engine, artifacts=ArtifactSettings(cache_dir=tmp_path)
    )
    with pytest.raises(
        ArtifactMissing,
        match=r"silero-vad, whisper-tiny.en-ct2 are missing.* \(80 MB\) with: "
        r".*duologue models pull silero-vad whisper-tiny.en-ct2$",
    ):
        configured_pipelines(settings)


def test_settings_of_a_stage_without_weights_stay_as_they_are(tmp_path: Path) -> None:
    pipelines = configured_pipelines(small_settings())
    (stage,) = pipelines["scripted"].stages[-1:]
    assert msgspec.structs.replace(stage, settings=dict(stage.settings)) == stage


async def test_traces_without_their_packages_are_refused_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "duologue.telemetry.tracing", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.resources", None)
    settings = changed(small_settings(), telemetry=TelemetrySettings(traces=True))
    with pytest.raises(ConfigError, match=r"duologue\[otel\]"):
        async with running_app(settings):
            pass


async def test_calls_are_recorded_where_settings_want_it(tmp_path: Path) -> None:
    telemetry = TelemetrySettings(record="sizes", record_folder=tmp_path / "calls")
    async with running_app(changed(small_settings(), telemetry=telemetry)) as app:
        session = app.sessions.open("echo")
        session.close("client_gone")
    (path,) = (tmp_path / "calls").iterdir()
    assert path.name == f"{session.id}.flight.jsonl"
    recording = decode_recording(path.read_bytes())
    assert recording.header.served == "echo"
    assert recording.steps[-1].call == "close"
