r"""Show a fleet as a page for the browser: its values, devices and windows, live.

The page is for this machine alone. On a Pi without a screen, type on your own machine:
ssh -L 8700:localhost:8700 pi@raspberrypi, and open http://localhost:8700/ there.

  lasp-edge dashboard greenhouse:program --broker mqtt://192.168.1.10
  lasp-edge dashboard --fleet greenhouse --broker mqtt://192.168.1.10 --lake ./lake
"""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from device_agent.agent.timing.system_clock import wall_us
from device_agent.console.command.session import (
    NEEDS_PROGRAM,
    FleetSession,
    add_fleet_arguments,
    now_s,
    watching,
)
from device_agent.console.command.watch import FleetTable
from device_agent.console.dashboard.board import Board
from device_agent.console.dashboard.history import History
from device_agent.console.dashboard.ledger import Ledger
from device_agent.console.dashboard.picture import numbers, picture
from device_agent.console.dashboard.server import PageServer
from lasp_edge.errors import UsageError

SECTION = "a fleet"
EXTRA = "lake"
PORT = 8_700
ADDITIONS = "lasp_edge.dashboard"
"""The entry points of additions of other tiers to the page; `lake` follows a lake's windows."""

EVERY_S = 1.0
"""Seconds between two pictures: nobody looks more often."""
POLL_S = 0.25
"""Seconds that a turn waits for a message, at most."""


class Dashboard:
    """A fleet that is listened to, and the page that shows it.

    Args:
        session: at the fleet's broker.
        server: of the page.
        value: the name of the fleet's value by which devices are compared; "" for the first one.
        has_lake: a lake's windows are shown; otherwise those that gateways publish.
    """

    def __init__(
        self, session: FleetSession, server: PageServer, value: str, *, has_lake: bool = False
    ) -> None:
        self.session, self.server, self._has_lake = session, server, has_lake
        self._value = value
        self._history, self._ledger = History(), Ledger(session.view.topics.fleet)
        self._next_s = 0.0

    def turn(self) -> None:
        """Take the messages that have arrived, and write the page's texts where it is time."""
        self.session.poll(POLL_S)
        if now_s() >= self._next_s:
            self._next_s = now_s() + EVERY_S
            self._write(round(wall_us() / 1_000_000, 1))

    def _write(self, at_s: float) -> None:
        board, view = self.server.board, self.session.view
        table = FleetTable.of(self.session, self._value)
        for each in table.devices:
            if each.readings is not None and each.sent_bytes is not None:
                self._ledger.note(each.device, each.readings, each.sent_bytes, now_s())
        if table.connected:
            for name, value, settled in numbers(view):
                self._history.note(name, value, at_s, settled=settled)
        else:
            self._history.interrupt(at_s)
        board.write("fleet", picture(self.session, table) | {"bytes": self._ledger.plain()})
        board.write("history", self._history.plain())
        windows = None if self._has_lake else view.windows.plain()
        if windows is not None:
            board.write("windows", windows)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_fleet_arguments(parser, NEEDS_PROGRAM)
    add = parser.add_argument
    add(
        "--lake",
        default="",
        metavar="DIR",
        help="the lake whose windows are shown (default: those of gateways)",
    )
    add("--value", default="", metavar="NAME", help="which of the fleet's values the devices are"
        " compared by (default: first)")  # fmt: skip
    add("--port", type=int, default=PORT, help="of the page; 0 for any (default: %(default)s)")


def run(arguments: argparse.Namespace) -> int:
    """Run the command; it ends when somebody stops it."""
    if not 0 <= arguments.port < 1 << 16:
        raise UsageError(f"--port: a number from 0 to {(1 << 16) - 1}, not {arguments.port}")
    with dashboard(arguments) as shown:
        shown.session.await_connection()
        shown.turn()  # a mistake ends the command before anybody opens the page
        print(f"The page: {shown.server.url} (Ctrl-C ends it)", flush=True)  # noqa: T201
        while True:
            shown.turn()


@contextmanager
def dashboard(arguments: argparse.Namespace) -> Iterator[Dashboard]:
    """Serve the page of the fleet that was named, and of its lake.

    Raises:
        CommandError: the port is taken, or there is no such fleet or lake.
    """
    board = Board()
    lake = _lake_follower(arguments.lake, board) if arguments.lake else None
    server = PageServer(board, arguments.port)
    try:
        with watching(arguments, connects=False) as session:
            server.start()
            if lake is not None:
                lake.start()
            yield Dashboard(session, server, arguments.value, has_lake=lake is not None)
    finally:
        server.stop()
        if lake is not None:
            lake.stop()


def _lake_follower(root: str, board: Board) -> Any:
    """Return the follower of a lake, which shows its windows.

    Raises:
        NotFound: there is no such lake.
    """
    from importlib.metadata import entry_points  # noqa: PLC0415 - rarely needed

    (point,) = entry_points(group=ADDITIONS, name="lake")
    return point.load()(root, partial(board.write, "windows"))
