"""Bugs of windows that wait for devices: most break the law of `simulations.tentative`.

These cannot show in most worlds, in which each window is shown at once.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, Final

from crdts.frontier import BOTTOM_US
from device_agent.gateway import core as gateway_core
from device_agent.gateway.run import GatewayRun
from lasp_edge.protocol import waiting
from lasp_edge.protocol.frontier import AwaitedDevices
from lasp_edge.protocol.waiting import Stair, Step, WindowWaiting
from simulations.planted.bug import planted, replaced

LAW: Final = "tentative"
"""What these bugs need: a draw of that proof, and no scenario."""
_planted = partial(planted, needs=LAW)


@_planted
def since_is_the_end_of_the_window() -> Iterator[None]:
    """Windows wait since their end, by the clock: nobody had time to promise anything."""
    right = WindowWaiting.joined

    def joined(self: WindowWaiting, steps: Iterable[Step], now_us: int | None) -> WindowWaiting:
        ticks = [] if now_us is None else [Step(now_us, now_us)]
        return right(self, [*steps, *ticks], now_us)

    with replaced(WindowWaiting, "joined", joined):
        yield


@_planted
def a_promise_counts_beyond_the_time_at_which_it_came() -> Iterator[None]:
    """One clock is two hours fast: all windows of two hours are due when its promise comes."""

    def steps_of(promises: Iterable[Any]) -> list[Step]:
        return [Step(each.heard_us, each.low_us) for each in promises if each.low_us is not None]

    with replaced(gateway_core, "steps_of", steps_of):
        yield


@_planted
def whoever_is_expected_is_waited_for() -> Iterator[None]:
    """A tentative row names devices that have sent all that belongs to it."""

    def before(self: AwaitedDevices, _end_us: int) -> tuple[str, ...]:
        return tuple(each.device for each in self.devices)

    with replaced(AwaitedDevices, "before", before):
        yield


@_planted
def nothing_waits() -> Iterator[None]:
    """Each window is shown at once, also where the outage is shorter than X."""
    with replaced(WindowWaiting, "is_due", lambda *_arguments: True):
        yield


@_planted
def nothing_is_ever_due() -> Iterator[None]:
    """A window has no row until it is final, however long the outage is."""
    with replaced(WindowWaiting, "is_due", lambda *_arguments: False):
        yield


@partial(planted, needs="wait_s")
def only_the_newest_promise_is_remembered_for_windows_that_wait() -> Iterator[None]:
    """Devices promise every few seconds: the step of which X counts is always a new one."""
    right = waiting.stair

    def stair(steps: Iterable[Step], wait_us: int, now_us: int | None) -> Stair:
        return right(steps, wait_us, now_us)[-1:]

    with replaced(waiting, "stair", stair):
        yield


@partial(planted, needs="gateways")
def a_gateway_commits_when_nothing_has_come_for_a_while() -> Iterator[None]:
    """Panes come, and their device waits for an answer until the gateway looks at silence."""
    right = GatewayRun.hear

    def hear(self: GatewayRun, topic: str, payload: bytes, *, retained: bool = False) -> None:
        due_us = self._due_us
        right(self, topic, payload, retained=retained)
        self._due_us = due_us

    with replaced(GatewayRun, "hear", hear):
        yield


@partial(planted, needs="operated")
def while_a_promise_is_void_everybody_is_missing() -> Iterator[None]:
    """An entry comes, and one device has not heard it: a row waits for those that have, too."""
    right = AwaitedDevices.before

    def before(self: AwaitedDevices, end_us: int) -> tuple[str, ...]:
        found = right(self, end_us)
        is_void = any(each.low_us == BOTTOM_US for each in self.devices)
        return tuple([each.device for each in self.devices]) if found and is_void else found

    with replaced(AwaitedDevices, "before", before):
        yield
