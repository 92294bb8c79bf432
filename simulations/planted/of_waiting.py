"""Bugs of windows that wait for devices: they break the law of `simulations.tentative`.

They cannot show in the worlds of the other bugs, in which each window is shown at once.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, Final

from device_agent.gateway import core as gateway_core
from lasp_edge.protocol.frontier import AwaitedDevices
from lasp_edge.protocol.waiting import Step, WindowWaiting
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
