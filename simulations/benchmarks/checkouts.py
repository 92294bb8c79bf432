"""Bytes of a fleet with right clocks and one gateway, by this release and by another checkout.

Run: `python -m simulations.benchmarks.checkouts DIRECTORY`, where `git worktree add DIRECTORY
COMMIT` has made the other one; it takes two minutes of real time. Two fleets of three agents and a
gateway run side by side, each on a broker of its own, from the two checkouts. Each agent takes two
readings a second of a window of ten seconds, through a wire that counts the bytes of both
directions, MQTT's own included. The first half minute does not count.
"""

import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from simulations.commands import parser_of
from simulations.processes.broker import PrivateBroker
from simulations.processes.process import Process, stop
from simulations.processes.relay import Relay

PROGRAM: Final = """
from lasp_edge import Program, folds

program = Program("checkouts")
load = program.event("memory", resolution="0.01")
program.window("load", source=load, fold=folds.mean(), size_s=10)
"""
DEVICES: Final = ("a", "b", "c")
BEGIN_S, COUNTED_S = 30.0, 90.0
HERE: Final = Path(__file__).parents[2]


class CountedFleet:
    """Agents, each behind a wire that counts, and a gateway.

    Args:
        checkout: whose release they run.
        directory: of their files.
        stack: ends them.
    """

    def __init__(self, checkout: Path, directory: Path, stack: ExitStack) -> None:
        directory.mkdir()
        (directory / "checkouts.py").write_text(PROGRAM)
        broker = stack.enter_context(PrivateBroker(directory / "broker"))
        processes: list[Process] = []
        stack.callback(stop, processes)

        def start(command: str, name: str, port: int, *options: str) -> None:
            environ = {"PYTHONPATH": str(checkout)}
            process = Process(directory, name, environ=environ, cwd=directory)
            data = ("--data-dir", name, "--broker", f"mqtt://127.0.0.1:{port}")
            processes.append(process)
            process.run([command, "checkouts:program", *data, *options])

        start("gateway", "gateway", broker.port)
        self._wires = []
        for name in DEVICES:
            wire = Relay(broker.port)
            self._wires.append(wire)
            stack.callback(wire.close)
            start("agent", name, wire.port, "--device", name, "--source", "host", "--every", "0.5")

    @property
    def total_bytes(self) -> int:
        """The bytes so far, in both directions."""
        return sum(wire.sent_bytes + wire.received_bytes for wire in self._wires)


def main(words: Sequence[str] | None = None) -> int:
    """Run both fleets, and print their bytes an hour and device."""
    parser = parser_of("simulations.benchmarks.checkouts", __doc__)
    parser.add_argument("other", type=Path, help="the other checkout")
    other = parser.parse_args(words).other.resolve()
    if not (other / "lasp_edge").is_dir():
        parser.error(f"{other} is no checkout: a directory with the package lasp_edge is needed")
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        fleets = [
            CountedFleet(checkout, directory / name, stack)
            for name, checkout in (("here", HERE), ("other", other))
        ]
        time.sleep(BEGIN_S)
        before = [fleet.total_bytes for fleet in fleets]
        time.sleep(COUNTED_S)
        ours, theirs = (
            fleet.total_bytes - bytes_before
            for fleet, bytes_before in zip(fleets, before, strict=True)
        )
    an_hour = 3_600 / COUNTED_S / len(DEVICES)
    print(f"this release  {ours * an_hour:>12,.0f} bytes an hour and device")
    print(f"the other one {theirs * an_hour:>12,.0f} bytes an hour and device")
    print(f"ratio         {ours / theirs if theirs else 0:>12.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
