"""What a call and a device that speaks and listens in it need of each other.

This module must not know any device.
"""

from __future__ import annotations

from typing import Protocol

from duologue.clients.playback import Taken


class DevicePort(Protocol):
    """A call, as a device sees it.

    Concurrency:
        Belongs to the event loop; no method waits.
    """

    @property
    def rate_hz(self) -> int:
        """Rate of the samples in both directions."""
        ...

    @property
    def has_speech(self) -> bool:
        """There is something to play; until then it is silence."""
        ...

    def send_audio(self, pcm: bytes) -> None:
        """Say something.

        Raises:
            SendBufferFull: The network takes less than is said.
            CallEnded: The call is over.
        """
        ...

    def take_audio(self, samples: int) -> Taken:
        """Return the samples to be played next, silence where there are none."""
        ...


class Device(Protocol):
    """A microphone and a loudspeaker."""

    async def run(self, call: DevicePort) -> None:
        """Serve a call until cancelled.

        Raises:
            AudioDeviceError: The device cannot be used; the call ends.
        """
        ...

    def silence(self) -> int:
        """Throw away what was taken and not played; returns how many samples that were."""
        ...

    def unsounded(self) -> int:
        """Return how many of the samples that were taken nobody has heard yet.

        Those that wait for the sound card, and those inside it.
        """
        ...
