"""CPU seconds of Python and Spark's JVM together, as lines of the cost table."""

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from simulations.benchmarks.measure import MET, MISSED, OURS, Line


class Cpu:
    """Seconds of processor time of this process and of Spark's JVM.

    With those of the JVM's own children that have ended: Spark's launcher starts one.
    """

    def __init__(self, spark: SparkSession) -> None:
        jvm: Any = spark._jvm  # noqa: SLF001 - pyspark has no public word for it
        self._stat = Path(f"/proc/{jvm.java.lang.ProcessHandle.current().pid()}/stat")
        self._ticks = os.sysconf("SC_CLK_TCK")

    def __call__(self) -> float:
        """Return the seconds so far."""
        spent = self._stat.read_text().rpartition(")")[2].split()[11:15]
        return time.process_time() + sum(map(int, spent)) / self._ticks


@contextlib.contextmanager
def measured(cpu: Callable[[], float]) -> Iterator[list[float]]:
    """Give a list that holds wall seconds and CPU seconds once the block is over."""
    figures: list[float] = []
    began_s, began_cpu_s = time.perf_counter(), cpu()
    yield figures
    figures += [time.perf_counter() - began_s, cpu() - began_cpu_s]


def least(
    cpu: Callable[[], float], work: Callable[[], object], rounds: int, warm_s: float = 0
) -> float:
    """Return the least CPU seconds of some rounds; the first ones compile.

    Args:
        cpu: seconds so far.
        work: is done once in each round.
        rounds: the least number of them.
        warm_s: CPU seconds that all of them take at least: the JVM compiles what ran long, so what
            takes a second needs more rounds than what takes ten.
    """
    found: list[float] = []
    while len(found) < rounds or sum(found) < warm_s:
        with measured(cpu) as figures:
            work()
        found.append(figures[1])
    return min(found)


def written(rows: DataFrame) -> None:
    """Compute all rows, and leave them nowhere."""
    rows.write.format("noop").mode("overwrite").save()


def beside(
    what: str, ours_s: float, peer: str, peer_s: float, most: float, note: str = ""
) -> Iterator[Line]:
    """Yield two lines: what we spend in CPU seconds, and what another way does.

    Args:
        what: is done by both.
        ours_s: what ours took.
        peer: the other way.
        peer_s: what that took.
        most: the greatest part of it that ours is to take.
        note: what has to be known to read it.

    >>> ours, peer = beside("a join", 1.3, "max", 1.0, most=1.2)
    >>> ours.goal, peer.shown_ratio
    ('<= 1.2 of max: NOT met', '0.77x')
    """
    words = f"<= {most:g} of {peer}{MET if ours_s <= most * peer_s else MISSED}"
    yield Line(what, OURS, ours_s, ours_s, "s", goal=words, note=note)
    yield Line(what, peer, peer_s, peer_s, "s", peer_s / ours_s)
