"""What must hold of a device whose clock jumps: that clock is not trusted before its time.

- a wall clock that has jumped while its machine ran, and that neither the kernel nor another clock
  bears out, is not trusted before it has stayed as it is for long, by whichever process

>>> watch, clock = ClockWatch(), Clock()
>>> [watch.has_jumped(clock, now_us, is_trusted=True) for now_us in (10**15, 10**15 + 10**6)]
[False, False]
>>> clock.jump(3_600)
>>> watch.has_jumped(clock, 10**15 + 2 * 10**6, is_trusted=False)
True
"""

from collections.abc import Iterator
from typing import Final

from device_agent.agent.settings import Settings
from device_agent.agent.timing.judgement import LEAST_NEAR_US
from simulations.world.clock import Clock
from simulations.world.device import VirtualDevice
from simulations.world.scenario import CLOCKS
from simulations.world.world import World

NEAR_US: Final = max(Settings().max_skew_us, LEAST_NEAR_US)
"""Microseconds within which two clocks agree."""
WAIT_US: Final = Settings().clock_wait_us
"""Microseconds for which a clock that jumped must stay as it is."""
_STRANGE: Final = CLOCKS - {"clock_jump"} | {
    "hostile",
    "recorded_answers",
    "kept_beat",
    "broker_old",
    "held_up",
    "clone",
    "forged_hello",
    "gateway_jump",
    "gateway_1970",
    "gateway_drift",
}
"""What else changes clocks, or brings word of another one."""


class ClockWatch:
    """Looks at the clock of one device, while its machine is not started again.

    Attributes:
        nonce: of the process that runs.
    """

    def __init__(self) -> None:
        self.nonce = self._boot = -1
        self._trusted_us: int | None = None
        self._ahead_us = self._since_us = 0

    def begin(self, nonce: int, *, knows: bool) -> None:
        """Look at another process; its store may know nothing of the time in this boot."""
        self.nonce = nonce
        if not knows:
            self._trusted_us = None

    def has_jumped(self, clock: Clock, now_us: int, *, is_trusted: bool) -> bool:
        """Return whether a clock is where it must not be trusted yet."""
        ahead_us = clock.read(now_us) - now_us
        if clock.boots != self._boot:
            self._boot, self._trusted_us = clock.boots, None
        if abs(ahead_us - self._ahead_us) > NEAR_US or self._trusted_us is None:
            self._ahead_us, self._since_us = ahead_us, now_us
        has_jumped = self._trusted_us is not None and abs(ahead_us - self._trusted_us) > NEAR_US
        has_jumped = has_jumped and now_us < self._since_us + WAIT_US
        if is_trusted and not has_jumped:
            self._trusted_us = ahead_us
        return has_jumped


class ClockChecks:
    """Looks at the clocks of all devices."""

    def __init__(self) -> None:
        self._watches: dict[str, ClockWatch] = {}

    def wrong(self, world: World, device: VirtualDevice) -> Iterator[str]:
        """Yield that a device trusts a clock that jumped, and that nothing bears out."""
        core, clock = device.core, device.clock
        if _STRANGE & world.seen.keys() or not device.starts:
            return
        watch = self._watches.setdefault(device.name, ClockWatch())
        if watch.nonce != core.replica.nonce:
            knows = f"{device.name}, {clock.boots}" in (core.agent.facts.boots or {})
            watch.begin(core.replica.nonce, knows=knows)
        is_trusted = core.timing.state == "trusted"
        if not watch.has_jumped(clock, world.now_us, is_trusted=is_trusted):
            return
        others = [each.clock for each in world.devices.values() if each is not device]
        others += [sink.clock for sink in world.sinks]
        is_alone = not any(each.wrong or each.was_wrong for each in others)
        if is_trusted and clock.wrong and is_alone:
            yield f"{device.name} trusts its clock, which has jumped"
