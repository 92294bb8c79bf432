"""Which windows wait through an outage, and which are shown as tentative: on real processes.

    python -m simulations.outages

Two agents and a broker run on this machine, and a gateway for each X (`--tentative-after X`). The
wire between one agent and the broker flaps: it is cut for some seconds, again and again, as a bad
Wi-Fi is. For each length of the outages and each X it prints how many windows of ten seconds had a
tentative row. An agent whose connection broke tries again within five seconds, so X covers outages
that are five seconds shorter, and what a commit takes.
"""

import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from device_agent.gateway import table
from lasp_edge.errors import NotFound
from lasp_edge.tool.printing import RowsWanted
from simulations.commands import parser_of, say
from simulations.processes.broker import PrivateBroker
from simulations.processes.process import Process, now_s, stop
from simulations.processes.relay import Relay

PROGRAM: Final = """
from lasp_edge import Program, folds

program = Program("outages")
load = program.event("memory", resolution="0.01")
program.window("load", source=load, fold=folds.count(), size_s=10)
"""
WAITS_S: Final = (5, 15, 30)
OUTAGES_S: Final = (2.0, 5.0, 10.0, 20.0)
TIMES: Final = 3
"""Outages of each length."""
PATIENCE_S: Final = 180.0
NEAR, FAR = "near", "far"


class FlappingFleet:
    """A broker, two agents, one of them behind a wire that can be cut, and a gateway for each X.

    Args:
        directory: of their files.
        stack: ends them.
    """

    def __init__(self, directory: Path, stack: ExitStack) -> None:
        self.directory = directory
        (directory / "outages.py").write_text(PROGRAM)
        broker = stack.enter_context(PrivateBroker(directory / "broker"))
        processes: list[Process] = []
        stack.callback(stop, processes)
        self.wire = Relay(broker.port)
        stack.callback(self.wire.close)

        def start(name: str, words: list[str]) -> None:
            processes.append(Process(directory, name, cwd=directory))
            processes[-1].run([words[0], "outages:program", *words[1:]])

        for wait_s in WAITS_S:
            options = ["--roster", f"{NEAR},{FAR}", "--tentative-after", f"{wait_s}"]
            options += ["--name", f"x-{wait_s}", "--commit-every", "0.2"]
            data = ["--data-dir", str(self._gateway(wait_s)), "--broker", broker.url]
            start(f"x-{wait_s}", ["gateway", *data, *options])
        for name, port in ((NEAR, broker.port), (FAR, self.wire.port)):
            data = ["--data-dir", str(directory / name), "--broker", f"mqtt://127.0.0.1:{port}"]
            source = ["--source", "host", "--every", "0.5", "--interval", "0.4"]
            start(name, ["agent", "--device", name, *data, *source, "--lateness", "0.5"])

    def _gateway(self, wait_s: int) -> Path:
        return self.directory / f"x-{wait_s}"

    def rows(self, wait_s: int, since_us: int) -> Iterator[tuple[int, str]]:
        """Yield start and status of each row of a gateway's windows that end after a time."""
        wanted = RowsWanted("load", all_revisions=True)
        try:
            columns, found, _ = table.found(str(self._gateway(wait_s)), wanted)
        except NotFound:  # it is still starting
            return
        for values in found:
            row = dict(zip(columns, values, strict=True))
            if row["end_us"] > since_us:
                yield row["start_us"], row["status"]

    def wait_until_final(self, after_us: int) -> None:
        """Wait until each gateway has a final window that starts after a time."""

        def are_final() -> bool:
            return all(
                any(
                    status == "final" and start_us > after_us
                    for start_us, status in self.rows(x, after_us)
                )
                for x in WAITS_S
            )

        _until(are_final)

    def tentative(self, length_s: float) -> list[int]:
        """Let the wire flap; return for each X how many windows were shown as tentative."""
        began_us = _now_us()
        for _ in range(TIMES):
            self.wire.cut()
            time.sleep(length_s)
            self.wire.restore()
            self.wait_until_final(_now_us())
        found = []
        for wait_s in WAITS_S:
            rows = self.rows(wait_s, began_us)
            found.append(len({start_us for start_us, status in rows if status == "tentative"}))
        return found


def _now_us() -> int:
    return time.time_ns() // 1000  # noqa: TID251 - the agents' clock is the machine's


def _until(holds: Callable[[], bool]) -> None:
    ends_s = now_s() + PATIENCE_S
    while not holds():
        if now_s() > ends_s:
            raise TimeoutError(f"no window was final within {PATIENCE_S:.0f} s")
        time.sleep(0.5)


def main(words: Sequence[str] | None = None) -> int:
    """Measure, and print the table."""
    parser = parser_of("simulations.outages", __doc__)
    parser.add_argument("--outages", default=",".join(f"{each:g}" for each in OUTAGES_S))
    lengths_s = [float(each) for each in parser.parse_args(words).outages.split(",")]
    with ExitStack() as stack:
        site = FlappingFleet(Path(stack.enter_context(tempfile.TemporaryDirectory())), stack)
        site.wait_until_final(_now_us())
        counts = [site.tentative(length_s) for length_s in lengths_s]
    heads = " | ".join(f"{each:g} s" for each in lengths_s)
    say(f"| windows of 10 s shown as tentative; {TIMES} outages of | {heads} |")
    say("|---|" + "---|" * len(lengths_s))
    for place, wait_s in enumerate(WAITS_S):
        cells = " | ".join(str(each[place]) for each in counts)
        say(f"| `--tentative-after {wait_s}` | {cells} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
