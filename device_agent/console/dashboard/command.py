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

from device_agent.console.command.looking import add_looking_arguments, looking
from device_agent.console.dashboard.board import Board
from device_agent.console.dashboard.dashboard import Dashboard
from device_agent.console.dashboard.server import PageServer
from lasp_edge.errors import UsageError

PORT = 8_700
ADDITIONS = "lasp_edge.dashboard"
"""The entry points of what other tiers add to the page; `lake` follows a lake's windows."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_looking_arguments(parser)
    add = parser.add_argument
    add(
        "--lake",
        default="",
        metavar="DIR",
        help="the lake whose windows are shown (default: what gateways tell)",
    )
    add("--value", default="", metavar="NAME", help="which of the fleet's values the devices are"
        " compared by (default: first)")  # fmt: skip
    add("--port", type=int, default=PORT, help="of the page; 0 for any (default: %(default)s)")


def run(arguments: argparse.Namespace) -> int:
    """Run the command; it ends when somebody stops it."""
    if not 0 <= arguments.port < 1 << 16:
        raise UsageError(f"--port: a number from 0 to {(1 << 16) - 1}, not {arguments.port}")
    with dashboard(arguments) as shown:
        shown.fleet.await_connection()
        shown.turn()  # what cannot be shown is said before anybody looks
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
        with looking(arguments) as fleet:
            server.start()
            if lake is not None:
                lake.start()
            yield Dashboard(fleet, server, arguments.value, has_lake=lake is not None)
    finally:
        server.stop()
        if lake is not None:
            lake.stop()


def _lake_follower(root: str, board: Board) -> Any:
    """Return what follows a lake, and shows its windows.

    Raises:
        NotFound: there is no such lake.
    """
    from importlib.metadata import entry_points  # noqa: PLC0415 - rarely needed

    (point,) = entry_points(group=ADDITIONS, name="lake")
    return point.load()(root, partial(board.write, "windows"))
