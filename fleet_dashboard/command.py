r"""Show a fleet as a page for the browser: its values, devices and windows, live.

The page is for this machine alone. On a Pi without a screen, type on your own machine:
ssh -L 8700:localhost:8700 pi@raspberrypi, and open http://localhost:8700/ there.

  lasp-edge dashboard greenhouse:program --broker mqtt://192.168.1.10
  lasp-edge dashboard --fleet greenhouse --broker mqtt://192.168.1.10 --lake ./lake
"""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager

from device_agent.command.looking import Looking, add_looking_arguments, looking, now_s
from device_agent.command.watch import View
from device_agent.timing.system_clock import wall_us
from fleet_dashboard.board import Board
from fleet_dashboard.history import History
from fleet_dashboard.ledger import Ledger
from fleet_dashboard.picture import numbers, picture
from fleet_dashboard.server import PageServer
from lasp_edge.errors import UsageError

PORT = 8_700
EVERY_S = 1.0
"""Seconds between two pictures: nobody looks more often."""
POLL_S = 0.25
"""Seconds that a turn waits for a message, at most."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_looking_arguments(parser)
    add = parser.add_argument
    add("--lake", default="", metavar="DIR", help="the lake whose windows are shown, too")
    add("--value", default="", metavar="NAME", help="which of the fleet's values the devices are"
        " compared by (default: first)")  # fmt: skip
    add("--port", type=int, default=PORT, help="of the page; 0 for any (default: %(default)s)")


def run(arguments: argparse.Namespace) -> int:
    """Run the command; it ends when somebody stops it."""
    if not 0 <= arguments.port < 1 << 16:
        raise UsageError(f"--port: a number from 0 to {(1 << 16) - 1}, not {arguments.port}")
    with dashboard(arguments) as shown:
        shown.fleet.await_connection()
        print(f"The page: {shown.server.url} (Ctrl-C ends it)", flush=True)  # noqa: T201
        while True:
            shown.turn()


class Dashboard:
    """A fleet that is listened to, and the page that shows it; use it by `dashboard`.

    Attributes:
        fleet: what is heard of it.
        server: of the page.
    """

    def __init__(self, fleet: Looking, server: PageServer, value: str) -> None:
        self.fleet, self.server = fleet, server
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


@contextmanager
def dashboard(arguments: argparse.Namespace) -> Iterator[Dashboard]:
    """Serve the page of the fleet that was named, and of its lake.

    Raises:
        CommandError: the port is taken, or there is no such fleet or lake.
    """
    board = Board()
    lake = None
    if arguments.lake:
        from fleet_dashboard.windows import LakeLook  # noqa: PLC0415 - it needs the extra `cloud`

        lake = LakeLook(arguments.lake, board)
    server = PageServer(board, arguments.port)
    try:
        with looking(arguments) as fleet:
            server.start()
            if lake is not None:
                lake.start()
            yield Dashboard(fleet, server, arguments.value)
    finally:
        server.stop()
        if lake is not None:
            lake.stop()
