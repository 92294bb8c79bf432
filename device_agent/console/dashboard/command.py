r"""Show a fleet as a page for the browser: its values, devices and windows, live.

The page is for this machine alone. A phone opens it with --host 0.0.0.0 and a password in a file:

  (umask 077; head -c 9 /dev/urandom | base64 | tee page-password)
  lasp-edge dashboard greenhouse:program --broker mqtt://192.168.1.10 \
      --host 0.0.0.0 --page-login page-password
  lasp-edge dashboard --fleet greenhouse --broker mqtt://192.168.1.10 --lake ./lake

Any user name will do with it. The page is not encrypted: use it in a network that you trust, or by
SSH (ssh -L 8700:localhost:8700 pi@raspberrypi, and open http://localhost:8700/).
"""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
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
from device_agent.console.dashboard.server import (
    LOOPBACK,
    PageLogin,
    PageServer,
    is_loopback,
)
from lasp_edge.errors import UsageError
from lasp_edge.tool.broker_options import login_of

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
        self._next_s, self._began_s = 0.0, now_s()

    def turn(self) -> None:
        """Take the messages that have arrived, and write the page's texts where it is time."""
        self.session.poll(POLL_S)
        if now_s() >= self._next_s:
            self._next_s = now_s() + EVERY_S
            self._write(round(wall_us() / 1_000_000, 1))

    def _write(self, at_s: float) -> None:
        board, view, now = self.server.board, self.session.view, now_s()
        table = FleetTable.of(self.session, self._value)
        for each in table.devices:
            if each.readings is not None and each.sent_bytes is not None:
                self._ledger.note(each.device, each.readings, each.sent_bytes, now)
        if table.connected:
            for name, value, settled in numbers(view):
                self._history.note(name, value, at_s, settled=settled)
        else:
            self._history.interrupt(at_s)
        fleet = picture(self.session, table, now, self._began_s)
        board.write("fleet", fleet | {"bytes": self._ledger.plain()})
        board.write("history", self._history.plain())
        windows = None if self._has_lake else view.windows.plain(view.plan)
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
    every = "0.0.0.0 for all that this machine has, with --page-login"
    add("--host", default=LOOPBACK, metavar="ADDRESS", help=f"where the page is; {every}")
    file = "whom the page lets in: a file of two lines, user and password; of one: the password"
    add("--page-login", type=Path, metavar="FILE", help=file)
    add("--port", type=int, default=PORT, help="of the page; 0 for any (default: %(default)s)")


def run(arguments: argparse.Namespace) -> int:
    """Run the command; it ends when somebody stops it."""
    if not 0 <= arguments.port < 1 << 16:
        raise UsageError(f"--port: a number from 0 to {(1 << 16) - 1}, not {arguments.port}")
    with dashboard(arguments) as shown:
        shown.session.await_connection()
        shown.turn()  # a mistake ends the command before anybody opens the page
        whom = f", with the login in {arguments.page_login}" if arguments.page_login else ""
        print(f"The page: {shown.server.url}{whom} (Ctrl-C ends it)", flush=True)  # noqa: T201
        while True:
            shown.turn()


@contextmanager
def dashboard(arguments: argparse.Namespace) -> Iterator[Dashboard]:
    """Serve the page of the fleet that was named, and of its lake.

    Raises:
        CommandError: the port is taken, a password is missing, or there is no such fleet or lake.
    """
    board, login = Board(), _page_login(arguments.host, arguments.page_login)
    lake = _lake_follower(arguments.lake, board) if arguments.lake else None
    server = PageServer(board, arguments.port, arguments.host, login)
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


def _page_login(host: str, path: Path | None) -> PageLogin | None:
    """Return whom the page lets in; None for everybody on this machine.

    Raises:
        UsageError: the host needs a login and has none, or the file cannot be read.
    """
    if path is not None:
        return PageLogin(*login_of("--page-login", path))
    if is_loopback(host):
        return None
    raise UsageError(
        f"--host {host} shows the page to whoever reaches this machine, so it needs a password; "
        "type: (umask 077; head -c 9 /dev/urandom | base64 | tee page-password), and add "
        "--page-login page-password"
    )


def _lake_follower(root: str, board: Board) -> Any:
    """Return the follower of a lake, which shows its windows.

    Raises:
        NotFound: there is no such lake.
    """
    from importlib.metadata import entry_points  # noqa: PLC0415 - rarely needed

    (point,) = entry_points(group=ADDITIONS, name="lake")
    return point.load()(root, partial(board.write, "windows"))
