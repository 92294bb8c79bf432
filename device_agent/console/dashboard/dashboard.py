"""A fleet that is listened to, and the page that shows it, turned by the command's loop."""

from device_agent.agent.timing.system_clock import wall_us
from device_agent.console.command.looking import Looking, now_s
from device_agent.console.command.watch import View
from device_agent.console.dashboard.history import History
from device_agent.console.dashboard.ledger import Ledger
from device_agent.console.dashboard.picture import numbers, picture
from device_agent.console.dashboard.server import PageServer

EVERY_S = 1.0
"""Seconds between two pictures: nobody looks more often."""
POLL_S = 0.25
"""Seconds that a turn waits for a message, at most."""


class Dashboard:
    """A fleet that is listened to, and the page that shows it.

    Args:
        fleet: what is heard of it.
        server: of the page.
        value: the name of the fleet's value by which devices are compared; "" for the first one.
        has_lake: a lake's windows are shown; else those that gateways tell.
    """

    def __init__(
        self, fleet: Looking, server: PageServer, value: str, *, has_lake: bool = False
    ) -> None:
        self.fleet, self.server, self._has_lake = fleet, server, has_lake
        self._value = value
        self._history, self._ledger = History(), Ledger(fleet.fleet)
        self._next_s = 0.0

    def turn(self) -> None:
        """Take in what has come, and show it where it is time."""
        self.fleet.poll(POLL_S)
        if now_s() >= self._next_s:
            self._next_s = now_s() + EVERY_S
            self._show(wall_us() / 1_000_000)

    def _show(self, at_s: float) -> None:
        fleet, board = self.fleet, self.server.board
        view = View.of(fleet, self._value)
        for each in view.devices:
            if each.readings is not None and each.sent_bytes is not None:
                self._ledger.note(each.device, each.readings, each.sent_bytes, now_s())
        if fleet.connected:
            for name, value, settled in numbers(fleet):
                self._history.note(name, value, round(at_s, 1), settled=settled)
        else:
            self._history.interrupt(round(at_s, 1))
        board.write("fleet", picture(fleet, view) | {"bytes": self._ledger.plain()})
        board.write("history", self._history.plain())
        told = None if self._has_lake else fleet.onlooker.windows.plain()
        if told is not None:
            board.write("windows", told)
