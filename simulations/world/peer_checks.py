"""What must hold of whom a device takes for connected.

- who was not heard for three idle beats is not taken for connected, with or without a will
- the will of an earlier life of a device says nothing of one that was heard since: who is connected
  is waited for until all hold the same
"""

from collections.abc import Iterator, Mapping
from typing import Final

from device_agent.agent.fleet.agreement import SILENT_BEATS
from lasp_edge.protocol.checks import FrameError
from lasp_edge.protocol.frames import BeatFrame, PresenceFrame
from lasp_edge.protocol.kinds import FRAME_KINDS
from simulations.world.decoding import decoded
from simulations.world.device import VirtualDevice
from simulations.world.entry_checks import ENTRIES, not_replaced
from simulations.world.faults import STEP_US

BEAT: Final = f"/{FRAME_KINDS[BeatFrame.kind].topic}/"
"""Stands in the topics of beats."""
PRESENCE: Final = f"/{FRAME_KINDS[PresenceFrame.kind].topic}/"
"""Stands in the topics of presence."""


def heard(
    devices: Mapping[str, VirtualDevice],
    device: VirtualDevice,
    message: tuple[str, bytes],
    now_us: int,
) -> Iterator[str]:
    """Let a device take a message in; yield what is wrong with what it does.

    Args:
        devices: of the world.
        device: the one that hears.
        message: topic and payload.
        now_us: the true time.
    """
    topic, payload = message
    before = device.core.agreements.others() if PRESENCE in topic else []
    device.take(topic, payload, now_us)
    if BEAT in topic or PRESENCE in topic:
        _note_heard(device, payload, now_us)
    if ENTRIES in topic:
        yield from not_replaced(device, payload)
    if before:
        yield from _denied(devices, device, payload, before)


def _note_heard(device: VirtualDevice, payload: bytes, now_us: int) -> None:
    """Note when a device heard another one last."""
    try:
        device.heard_us[decoded(payload).sender.device] = now_us
    except FrameError:
        return  # nobody knows what it was to be


def not_expired(device: VirtualDevice, now_us: int) -> Iterator[str]:
    """Yield whom a device takes for connected, though it has not heard it for long."""
    silent_us = SILENT_BEATS * device.core.agent.settings.keep_alive_us
    for name in device.core.agreements.others():
        quiet_us = now_us - device.heard_us.get(name, device.begun_us)
        if quiet_us > silent_us + STEP_US:
            yield f"{device.name} takes {name} for connected, not heard for {quiet_us} us"


def _denied(
    devices: Mapping[str, VirtualDevice], device: VirtualDevice, payload: bytes, before: list[str]
) -> Iterator[str]:
    """Yield that a device has just taken another one for away, by the will of an earlier life.

    `before`: whom it took for connected before.
    """
    try:
        frame = decoded(payload)
    except FrameError:
        return  # nobody knows what it was to be
    name, nonce = frame.sender.device, frame.sender.nonce
    if not isinstance(frame, PresenceFrame) or frame.online or name not in devices:
        return
    lives = [] if devices[name].forgot else devices[name].lives
    peer = device.core.agreements._peers._peers.get(name)  # noqa: SLF001 - whom it has heard
    if peer is None or nonce not in lives or peer.replica.nonce not in lives:
        return
    is_earlier = lives.index(nonce) < lives.index(peer.replica.nonce)
    if is_earlier and name in before and name not in device.core.agreements.others():
        yield f"{device.name} takes {name} for away, by the will of an earlier life"
