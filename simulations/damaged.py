"""Damaged stores of agents and gateways: every window is right, or it is stated that it may not be.

    python -m simulations.damaged --stores 500

An agent and a gateway work on real files. Then both are killed, one file is damaged in a way that
a seed draws (bits, a lost end, a lost page, a lost or cut log, another page in its place), and both
go on. In the end each window is what the readings give; or the file was put aside, or the store or
the agent named what is missing or may count twice. Anything else is a fault.
"""

import argparse
import logging
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Final

from crdts import Replica
from device_agent.agent.core import Core, Durable
from device_agent.agent.intake.batch import Batch
from device_agent.agent.settings import Settings
from device_agent.agent.state.store import Store
from device_agent.gateway.core import GatewayCore, WaitingTerms
from device_agent.gateway.store import STORE_ID, FleetStore
from device_agent.storage.damage import DamagedStoreError
from lasp_edge import Plan, Program, folds
from lasp_edge.protocol.acceptance import Acceptance, Record
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.frontier import Listening
from lasp_edge.protocol.limits import EARLIEST_PANE_US, LATEST_PANE_US
from lasp_edge.protocol.overheard import Overheard
from lasp_edge.protocol.topics import Topics, topic_of
from lasp_edge.units import SECOND_US
from simulations.oracle import Reading, windows

BEGIN_US: Final = 1_700_000_000 * SECOND_US
READINGS: Final = 120
PAGE: Final = 4_096
NAME: Final = "cellar"
STATED: Final = ("doubtful", "fence: readings that may count twice", "fence: started alone")
"""Counters by which an agent names what is missing, or may count twice."""


def plan() -> Plan:
    """Return the plan of a program with one window."""
    program = Program("damaged")
    reading = program.event("reading")
    program.window("sums", source=reading, fold=folds.sum(), size_s=20, slide_s=10)
    return program.plan()


PLAN: Final = plan()
TOPICS: Final = Topics(PLAN.name)


class FilesUnderTest:
    """An agent and a gateway over files, with a reading a second, and the news of both."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.now_us = directory, BEGIN_US
        self.news: list[str] = []
        self._starts = 0
        self.start()

    def start(self) -> None:
        """Start both on what is there."""
        self._starts += 1
        self._start_gateway()
        self._start_agent()

    def _start_agent(self) -> None:
        self.store = Store(self.directory / "agent")
        self.news += filter(None, [self.store.news])
        settings = Settings(commit_every_us=0, trust_clock=True)
        core = self.core = Core(PLAN, NAME, 7 + self._starts, self.store.restored(), settings)
        self.agent = Durable(core, self.store)
        self.next = int(core.intake.sources.cursor("file") or 0)
        core.handle_connected(self.now_us)

    def _start_gateway(self) -> None:
        self.kept = FleetStore(self.directory / "gateway")
        self.news += filter(None, [self.kept.news])
        former = self.kept.begin(f"store-{self._starts}")
        sink = ("gateway", self.kept.facts()[STORE_ID])
        acceptance = Acceptance(PLAN.pane_streams, (), TOPICS, sink, overheard=Overheard({}))
        sender = Replica(1, 100 + self._starts, "gateway")
        terms = WaitingTerms([NAME])
        self.gateway = GatewayCore(PLAN, acceptance, self.kept, sender, terms, former)

    def close(self) -> None:
        """Kill both."""
        for store in (self.store, self.kept):
            with suppress(Exception):
                store.close()

    def run(self, seconds: int, *, ends: bool = False) -> None:
        """Let time pass; what is found to be damaged meanwhile is put aside, and begins again."""
        for _ in range(seconds):
            self.now_us += SECOND_US
            self._guarded(self.store, self._read, self._start_agent)
            if ends and self.next == READINGS:
                self.core.handle_end()
            self._guarded(self.store, self._tick, self._start_agent)

    def _guarded(self, store: Store, work: Callable[[], None], start: Callable[[], None]) -> None:
        try:
            work()
        except DamagedStoreError as error:
            self.news.append(str(error))
            store.put_aside()
            self._starts += 1
            start()

    def _read(self) -> None:
        if self.next < READINGS and self.core.fence.lets_read:
            at_us, self.next = BEGIN_US + self.next * SECOND_US, self.next + 1
            batch = Batch("file", ["reading"], [at_us], [self.next], [{}], cursor=str(self.next))
            self.agent.read(batch, self.now_us)

    def _tick(self) -> None:
        sent = [(p.topic, p.payload) for p in self.agent.tick(self.now_us)]
        self._gateway_takes([Record(self.now_us, t, False, payload) for t, payload in sent])  # noqa: FBT003

    def _gateway_takes(self, records: list[Record]) -> None:
        try:
            turn = self.gateway.take(records, Listening(self.now_us, BEGIN_US - 10**12))
            if turn.changes:
                self.kept.commit(turn.changes)
        except DamagedStoreError as error:
            self.news.append(str(error))
            self.kept.put_aside()
            self._starts += 1
            self._start_gateway()
            return
        self.gateway.replies.owe(turn.accepted, self.now_us, self.kept.commits)
        self.gateway.replies.answer(self._deliver, self.now_us)

    def _deliver(self, frame: Frame) -> bool:
        self.agent.hear(topic_of(frame, TOPICS), frame.encode(), self.now_us)
        return True

    def found(self) -> dict[tuple[str, int], tuple[object, ...]]:
        """Return (key, start) -> partial of the windows that the gateway calls final."""
        rows = self.kept.current("sums", EARLIEST_PANE_US, LATEST_PANE_US)
        return {row.at[1:]: row.partial for row in rows if row.status != "tentative"}

    def is_stated(self) -> bool:
        """Return whether anything was put aside, or is named as missing or doubled."""
        return bool(self.news) or any(self.core.counters.totals.get(name) for name in STATED)


def truth() -> dict[tuple[str, int], tuple[object, ...]]:
    """Return (key, start) -> partial, recomputed from the readings."""
    readings = [
        Reading(NAME, "reading", number + 1, BEGIN_US + number * SECOND_US)
        for number in range(READINGS)
    ]
    return {at: each.partial for at, each in windows(PLAN, "sums", readings).items()}


def damage(path: Path, draw: Random) -> str:
    """Damage a file in a way that is drawn, and return its name."""
    content = bytearray(path.read_bytes())
    pages = max(1, len(content) // PAGE)
    how = draw.choice(("bits", "cut", "zeros", "swapped", "lost", "older end"))
    at = draw.randrange(pages) * PAGE
    if how == "bits":
        for _ in range(draw.randrange(1, 40)):
            content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    elif how == "cut":
        del content[draw.randrange(len(content)) :]
    elif how == "zeros":
        content[at : at + PAGE] = bytes(len(content[at : at + PAGE]))
    elif how == "swapped":
        other = draw.randrange(pages) * PAGE
        content[at : at + PAGE] = content[other : other + PAGE].ljust(PAGE, b"\0")
    elif how == "older end":
        del content[int(len(content) * 0.6) :]
    path.write_bytes(content)
    if how == "lost":
        path.unlink()
    return f"{path.parent.name}/{path.name}: {how}"


def outcome(directory: Path, seed: int) -> tuple[str, str]:
    """Damage one store, and return "exact", "stated" or "WRONG", and what was damaged."""
    draw, site = Random(seed), FilesUnderTest(directory)
    site.run(draw.randrange(20, 90))
    kept = directory.with_name(f"{directory.name}-killed")
    shutil.copytree(directory, kept)  # as a kill would leave it: the log is not merged
    site.close()
    try:
        every = sorted(file for file in kept.rglob("*.sqlite*") if file.suffix != ".sqlite-shm")
        what = damage(draw.choice([file for file in every if file.stat().st_size]), draw)
        again = FilesUnderTest.__new__(FilesUnderTest)
        again.directory, again.now_us, again.news, again._starts = kept, site.now_us, [], 9  # noqa: SLF001
        again.start()
        again.run(READINGS + 900, ends=True)
        found, stated = again.found(), again.is_stated()
        again.close()
    finally:
        shutil.rmtree(kept)
    return "exact" if found == truth() else "stated" if stated else "WRONG", what


def outcomes(seeds: range) -> Iterator[tuple[int, str, str]]:
    """Yield seed, outcome and what was damaged."""
    for seed in seeds:
        with tempfile.TemporaryDirectory() as directory:
            yield (seed, *outcome(Path(directory) / "site", seed))


def main(words: list[str] | None = None) -> int:
    """Damage some stores, print what came of them, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m simulations.damaged", description=__doc__)
    parser.add_argument("--stores", type=int, default=500, metavar="N", help="how many")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="the first seed")
    arguments = parser.parse_args(words)
    counted: Counter[str] = Counter()
    logging.disable(logging.CRITICAL)
    try:
        for seed, came, what in outcomes(range(arguments.seed, arguments.seed + arguments.stores)):
            counted[came] += 1
            if came == "WRONG":
                print(f"seed {seed}: {what}: a final window is wrong, and nothing says so")  # noqa: T201
    finally:
        logging.disable(logging.NOTSET)
    print(", ".join(f"{count} {came}" for came, count in sorted(counted.items())))  # noqa: T201
    return bool(counted["WRONG"])


if __name__ == "__main__":
    sys.exit(main())
