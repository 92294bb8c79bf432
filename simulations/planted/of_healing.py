"""Bugs of what waits for its next try: they break the law of `simulations.healing`.

A world at rest does not show them: minutes later something else has healed what they left.
"""

from collections.abc import Iterator
from functools import partial
from typing import Final

from device_agent.agent.panes import flights
from device_agent.agent.panes.unlanded import Unlanded
from device_agent.agent.stored_rows import PaneId
from lasp_edge.protocol import greetings
from lasp_edge.protocol.commands import Subject
from lasp_edge.protocol.differences import Differences, LastAsk
from lasp_edge.protocol.lives import Lives
from lasp_edge.protocol.repeating import REPEAT_US, Repeating
from simulations.planted.bug import planted, replaced

LAW: Final = "healing"
"""What these bugs need: a seed of that law, and no scenario."""
_planted = partial(planted, needs=LAW)


@_planted
def strangers_are_greeted_as_seldom_as_others() -> Iterator[None]:
    """A lake is lost, the first answers are lost, too, and devices deliver to it minutes later."""
    with replaced(greetings, "STRANGERS_GREETED_AGAIN_US", greetings.GREETED_AGAIN_US):
        yield


@_planted
def commands_wait_for_the_time_of_a_clock_that_was_ahead() -> Iterator[None]:
    """A clock is set back: an operator's command is not repeated before it is as late again."""

    def due(self: Repeating, now_us: int) -> list[Subject]:
        found = sorted(subject for subject, at in self._due_us.items() if at <= now_us)
        for subject in found:
            self._wait(subject, now_us, REPEAT_US)
        return found

    with replaced(Repeating, "due", due):
        yield


@_planted
def frames_wait_for_the_time_of_a_clock_that_was_ahead() -> Iterator[None]:
    """A clock is set back: a frame that was lost is not given up before it is as late again."""

    def is_late(self: flights._Flight, now_us: int) -> bool:
        return now_us >= self.due_us

    with replaced(flights._Flight, "is_late", is_late):  # noqa: SLF001 - planted from outside
        yield


@_planted
def a_stranger_is_heard_in_place_of_a_device_for_ever() -> Iterator[None]:
    """A stranger says hello in the name of a device, which has to take another life for it."""

    def end_silence(self: Lives, device: str, now_us: int) -> None:
        announced = self._announced.get(device)
        if announced is not None and announced.is_over(now_us):
            del self._announced[device]

    with replaced(Lives, "_end_silence", end_silence):
        yield


@_planted
def who_asked_once_in_vain_waits_as_long_as_ever() -> Iterator[None]:
    """A part of a shared set was lost, and the first question, too: it lacks for a minute."""

    def may_ask(self: Differences, name: str, now_us: int) -> bool:
        asked = self._asked.get(name)
        if asked is not None and abs(now_us - asked.at_us) < asked.wait_us:
            return False
        wait_us = self._settled_us if asked is None else self._most_us
        self._asked[name] = LastAsk(now_us, wait_us)
        return True

    with replaced(Differences, "_may_ask", may_ask):
        yield


@_planted
def what_has_landed_of_an_open_window_holds_the_promise() -> Iterator[None]:
    """Windows of a minute: whoever waits for a device waits until the minute is over."""

    def sent(_self: Unlanded, _pane: PaneId, _seq: int, _low_us: int) -> None:
        return None

    with replaced(Unlanded, "sent", sent):
        yield
