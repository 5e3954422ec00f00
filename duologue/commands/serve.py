"""``duologue serve``: run the server until it is asked to stop.

This module must not know how the server is put together.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from typing import Any

from duologue.app import Tls, running_app
from duologue.commands.event_loop import run_async
from duologue.commands.part import calm_collector, run_part
from duologue.commands.supervisor import Supervisor, part_command
from duologue.config import add_options, load_from_args
from duologue.core.errors import ConfigError
from duologue.engines.pools.start_report import lines
from duologue.gateway.tls import Certificate
from duologue.settings import Settings
from duologue.telemetry import configure_logging


def register(subparsers: Any) -> None:
    """Add ``serve`` to the commands."""
    parser = subparsers.add_parser("serve", help="run the server and its web page")
    parser.add_argument(
        "--tls",
        choices=("dev",),
        help="serve https:// and wss:// with a certificate made for development",
    )
    for name, what in (("certificate", "certificate"), ("key", "private key")):
        parser.add_argument(
            f"--tls.{name}", metavar="FILE", help=f"the {what}; short for --gateway.tls.{name}"
        )
    parser.add_argument(
        "--edges",
        metavar="N",
        help="N gateway processes on one port, and one with the models; short for --hosts.edges",
    )
    for name, what in (("host", "the address to listen on"), ("port", "the port")):
        parser.add_argument(
            f"--{name}", metavar=name.upper(), help=f"{what}; short for --gateway.{name}"
        )
    parser.add_argument("--part", action="store_true", help=argparse.SUPPRESS)
    add_options(parser, Settings)


def run(args: argparse.Namespace) -> int:
    """Serve until SIGINT or SIGTERM; a second one ends calls at once.

    Raises:
        ConfigError: The settings cannot be used.
        EngineError: A model cannot be started.
    """
    if args.tls == "dev":
        setattr(args, "gateway.tls.dev", "true")
    if args.edges is not None:
        setattr(args, "hosts.edges", args.edges)
    for name in ("tls.certificate", "tls.key", "host", "port"):
        given = getattr(args, name)
        if given is not None:
            setattr(args, f"gateway.{name}", given)
    settings = load_from_args(Settings, args, os.environ).settings
    telemetry = settings.telemetry
    configure_logging(
        level=telemetry.log_level,
        log_format=telemetry.log_format,
        keep_private=telemetry.log_private,
    )
    if args.part:
        return run_async(run_part(settings))
    if settings.hosts.edges or settings.hosts.role != "all":
        return run_async(_supervise(settings))
    return run_async(_serve(settings))


def _stop_events() -> tuple[asyncio.Event, asyncio.Event]:
    """Return what SIGINT and SIGTERM set: the first of them one, the second the other."""
    stop, stop_now = asyncio.Event(), asyncio.Event()

    def on_signal() -> None:
        (stop_now if stop.is_set() else stop).set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal)
    return stop, stop_now


async def _supervise(settings: Settings) -> int:
    stop, stop_now = _stop_events()
    hosts = settings.hosts
    if hosts.role == "gateways" and not hosts.edges:
        raise ConfigError("hosts.role is gateways: say how many, with --edges N")
    _say(
        f"starting {0 if hosts.role == 'gateways' else 1} session host and "
        f"{0 if hosts.role == 'host' else hosts.edges} gateways"
    )
    command = part_command(sys.argv[1:])
    return await Supervisor(settings, command, _say).run(stop, stop_now)


async def _serve(settings: Settings) -> int:
    stop, stop_now = _stop_events()
    loop = asyncio.get_running_loop()
    names = ", ".join(model.name for model in settings.models)
    _say(
        f"starting {names}: each model says when it is loaded, then comes one line with the address"
    )
    async with running_app(settings, stop_now=stop_now) as app:
        calm_collector()
        if app.tls is not None:
            loop.add_signal_handler(signal.SIGHUP, _reload, app.tls)
            if app.tls.certificate.is_development:
                _say(_how_to_trust(app.tls.certificate))
        for line in lines(app.engine.lifecycle.start_report):
            _say(line)
        _say(f"ready: {app.url}  (Ctrl-C stops)")
        await stop.wait()
        _say("stopping: calls may finish; Ctrl-C again ends them now")
    return 0


def _reload(tls: Tls) -> None:
    try:
        tls.reload()
    except ConfigError as exc:
        _say(f"the certificate stays as it was: {exc.message}")
    else:
        _say(f"the certificate was read again: {tls.certificate.fingerprint()}")


def _how_to_trust(certificate: Certificate) -> str:
    return (
        f"this certificate is for development, and nobody trusts it yet: {certificate.path}\n"
        f"  SHA-256 {certificate.fingerprint()}\n"
        f"  Node: NODE_EXTRA_CA_CERTS={certificate.path}   "
        f"Python: SSL_CERT_FILE={certificate.path}   curl: --cacert {certificate.path}\n"
        "  Browsers: open the address, compare the fingerprint, and accept it"
    )


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()
