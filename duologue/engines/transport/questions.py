"""Questions and answers between hosts, over ZeroMQ on TCP, for those who know the same secret.

Both ends' CURVE keys are made of the secret, so nobody else is heard, and what travels is
encrypted. A question is asked again while there is no answer, so the same one may come twice. This
module must not know what is asked.

Source:
    CurveZMQ: https://rfc.zeromq.org/spec/26/, ZAP: https://rfc.zeromq.org/spec/27/.
"""

from __future__ import annotations

import hashlib
import hmac
import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple

import zmq
import zmq.utils.z85

from duologue.core.clock import Clock
from duologue.core.errors import AuthError, EngineError, StageTimeout
from duologue.engines.transport.port import Data

MAX_QUESTION_BYTES = 4096
MAX_ANSWER_BYTES = 2**30
HIGH_WATER_MARK = 8
"""Messages that may wait for one peer; an answer more is dropped, and asked for again."""

LEAST_SECRET_BYTES = 16
MAX_LINKS = 64
"""Places that are kept in reach; of more, the one that was not asked for longest is let go."""

ASK_AGAIN_S = 0.5
RECONNECT_MS = 20
NUMBER_BYTES = 8
_TCP = "tcp://"
_ZAP = "inproc://zeromq.zap.01"
_STOP = "inproc://stop"

Answer = Callable[[bytes], Sequence[Data] | None]
"""Called in the thread that answers; ``None``: what was asked is no question."""


class Keys(NamedTuple):
    """A CURVE key pair in the form of Z85."""

    public: bytes
    private: bytes

    @classmethod
    def of(cls, secret: bytes, role: str) -> Keys:
        """Make the pair of one role; whoever knows the secret knows both.

        Raises:
            AuthError: The secret is short enough to be guessed.
        """
        if len(secret) < LEAST_SECRET_BYTES:
            raise AuthError(
                f"the secret of a cluster has {len(secret)} bytes; {LEAST_SECRET_BYTES} at least"
            )
        words = f"duologue transport, {role}".encode()
        private = zmq.utils.z85.encode(hmac.digest(secret, words, hashlib.sha256))
        return cls(zmq.curve_public(private), private)


class Answerer:
    """Answers at an address, in a thread of its own.

    Args:
        host: The address of this machine, by which others find it.
        port: 0: any that is free.

    Raises:
        EngineError: The address cannot be listened at.
    """

    def __init__(self, host: str, port: int, secret: bytes, answer: Answer) -> None:
        self._answer = answer
        self._askers_key = Keys.of(secret, "reader").public
        self._context = zmq.Context()
        door, questions = self._context.socket(zmq.ROUTER), self._context.socket(zmq.ROUTER)
        door.bind(_ZAP)
        _bound(questions)
        questions.set(zmq.MAXMSGSIZE, MAX_QUESTION_BYTES)
        questions.set(zmq.CURVE_SERVER, 1)
        questions.set(zmq.CURVE_SECRETKEY, Keys.of(secret, "store").private)
        self._stop = self._context.socket(zmq.PAIR)
        stopping = self._context.socket(zmq.PAIR)
        self._stop.bind(_STOP)
        stopping.connect(_STOP)
        sockets = (door, questions, stopping)
        try:
            questions.bind(f"tcp://{host}:{port or '*'}")
        except zmq.ZMQError as exc:
            for each in (*sockets, self._stop):
                each.close(0)
            self._context.term()
            raise EngineError(f"no transport at {host}:{port}: {exc.strerror}") from exc
        self.place: str = questions.get_string(zmq.LAST_ENDPOINT)
        self._thread = threading.Thread(
            target=self._serve, args=sockets, name="payload store", daemon=True
        )

    def start(self) -> None:
        """Answer from now on."""
        self._thread.start()

    def close(self) -> None:
        """Answer nobody any more. A second time does nothing."""
        if self._stop.closed:
            return
        self._stop.send(b"")
        self._thread.join()
        self._stop.close(0)
        self._context.term()

    def _serve(
        self, door: zmq.Socket[bytes], questions: zmq.Socket[bytes], stopping: zmq.Socket[bytes]
    ) -> None:
        poller = zmq.Poller()
        for each in (door, questions, stopping):
            poller.register(each, zmq.POLLIN)
        while True:
            ready = dict(poller.poll())
            if stopping in ready:
                break
            if door in ready:
                self._admit(door)
            if questions in ready:
                route, *words = questions.recv_multipart()
                number, asked = (words[0], words[1]) if len(words) == 2 else (b"", b"")
                answer = self._answer(asked) if len(number) == NUMBER_BYTES else None
                if answer is not None:
                    questions.send_multipart([route, number, *answer], copy=False)
        for each in (door, questions, stopping):
            each.close(0)

    def _admit(self, door: zmq.Socket[bytes]) -> None:
        # RFC 27: version, request, domain, address, identity, mechanism, credentials.
        route, empty, *request = door.recv_multipart()
        version, request_id, *_, mechanism, key = request if len(request) == 7 else (b"",) * 4
        known = mechanism == b"CURVE" and hmac.compare_digest(
            zmq.utils.z85.encode(key), self._askers_key
        )
        status = (b"200", b"OK") if known else (b"400", b"unknown key")
        door.send_multipart([route, empty, version, request_id, *status, b"reader", b""])


class Asker:
    """Asks any number of answerers.

    Concurrency:
        Belongs to one thread.
    """

    def __init__(self, secret: bytes, clock: Clock) -> None:
        self._clock = clock
        self._keys = Keys.of(secret, "reader")
        self._answerers_key = Keys.of(secret, "store").public
        self._context = zmq.Context()
        self._links: dict[str, zmq.Socket[bytes]] = {}
        self._number = 0

    def ask(self, place: str, question: bytes, deadline: float) -> list[zmq.Frame]:
        """Ask until there is an answer. What was given up leaves nothing to the next question.

        Raises:
            EngineError: That is no place, or there is no socket left.
            StageTimeout: There is no answer by the deadline.
        """
        link = self._link(place)
        self._number += 1
        number = self._number.to_bytes(NUMBER_BYTES, "little")
        ask_at = self._clock.now()
        while (now := self._clock.now()) < deadline:
            if now >= ask_at:
                # To one who is gone there is room for no more than the high-water mark.
                self._send(link, number, question)
                ask_at = now + ASK_AGAIN_S
            patience_ms = int(max(0.0, min(ask_at, deadline) - now) * 1000)
            if link.poll(patience_ms, zmq.POLLIN):
                words: list[zmq.Frame] = link.recv_multipart(copy=False)
                if words[0].bytes == number:
                    return words[1:]
        raise StageTimeout(f"{place} did not answer in time")

    def tell(self, place: str, word: bytes) -> bool:
        """Say something that needs no answer; returns whether there was room for it."""
        return self._send(self._link(place), bytes(NUMBER_BYTES), word)

    def close(self) -> None:
        """Ask nobody any more."""
        while self._links:
            self._links.popitem()[1].close(0)
        self._context.term()

    @staticmethod
    def _send(link: zmq.Socket[bytes], number: bytes, words: bytes) -> bool:
        if not link.poll(0, zmq.POLLOUT):
            return False
        link.send_multipart([number, words])
        return True

    def _link(self, place: str) -> zmq.Socket[bytes]:
        link = self._links.pop(place, None)
        if link is None:
            if not place.startswith(_TCP):
                raise EngineError(f"{place[:100]!r} is no address")
            if len(self._links) >= MAX_LINKS:
                # Places of the dead are not asked again, and ZeroMQ would look for them for ever.
                self._links.pop(next(iter(self._links))).close(0)
            link = self._open()
            try:
                link.connect(place)
            except zmq.ZMQError as exc:
                link.close(0)
                raise EngineError(f"{place[:100]!r} is no address") from exc
        self._links[place] = link  # behind all others, as the latest that was asked
        return link

    def _open(self) -> zmq.Socket[bytes]:
        try:
            link = self._context.socket(zmq.DEALER)
        except zmq.ZMQError as exc:
            raise EngineError(f"no socket to ask from: {exc.strerror}") from exc
        _bound(link)
        link.set(zmq.MAXMSGSIZE, MAX_ANSWER_BYTES)
        link.set(zmq.RECONNECT_IVL, RECONNECT_MS)
        link.set(zmq.CURVE_SERVERKEY, self._answerers_key)
        link.set(zmq.CURVE_PUBLICKEY, self._keys.public)
        link.set(zmq.CURVE_SECRETKEY, self._keys.private)
        return link


def _bound(one: zmq.Socket[bytes]) -> None:
    one.set(zmq.LINGER, 0)
    one.set(zmq.SNDHWM, HIGH_WATER_MARK)
    one.set(zmq.RCVHWM, HIGH_WATER_MARK)
