"""Readings that wait for the clock: in the store, each batch with the monotonic time it came at.

While no clock is trusted (`judgement`), nothing can be placed in time, and nothing may be refused
as too late or in the future, for that would be the clock's fault. So every batch waits, and its
source goes on. Once a clock is trusted, they go through the intake as they came, a page at a tick,
each page in one transaction with its removal; a reading without a time of its own is placed at

    the trusted time - (monotonic clock now - monotonic clock then)

A reading of an earlier boot, in which no clock was trusted, cannot be dated: it is counted as
`undated`, unless it carries its own time.
"""

import json
from decimal import Decimal
from fractions import Fraction
from typing import Any

from device_agent.agent import Agent
from device_agent.changes import Changes, Retraction, WaitingRow, WaitingTotals
from device_agent.intake.batch import Batch
from device_agent.intake.progress import SourceProgress
from device_agent.parts import Part
from device_agent.timing.timing import EARLIEST_US, Timing

WAITING_BYTES = 16 << 20
"""Bytes of readings that wait, at most: some 200,000 readings, or two days at one a second. What
comes after them is refused and counted."""
PAGE_BYTES = 64 << 10
"""Bytes of readings that are placed in a tick, about: a thousand readings."""
FULL = "the clock is not trusted, and no more readings can wait"


class Waiting(Part):
    """The readings that wait until a clock is trusted.

    Args:
        agent: what all parts share.
        timing: dates them.
        sources: how far each source was read.
        totals: what the store holds of them.
    """

    name = "waiting"

    def __init__(
        self, agent: Agent, timing: Timing, sources: SourceProgress, totals: WaitingTotals
    ) -> None:
        self._agent, self._timing, self._sources = agent, timing, sources
        self._last, agent.clock.waiting, self._bytes = totals
        self._changes = Changes()

    def put(self, batch: Batch, now_us: int) -> None:
        """Let a batch wait; its source has been read further."""
        counters, clock = self._agent.counters, self._agent.clock
        for reason, count in batch.refused.items():
            counters.add("refused", count)
            counters.add(f"refused: {reason}", count)
        self._sources.advance(batch, None, stamped=False)
        if not len(batch):
            return
        columns = (batch.source, batch.names, batch.times_us, batch.values, batch.tags)
        packed = json.dumps(columns, default=_as_json, separators=(",", ":")).encode()
        if self._bytes + len(packed) > WAITING_BYTES:
            counters.add("refused", len(batch))
            counters.add(f"refused: {FULL}", len(batch))
            return
        self._last += 1
        self._bytes += len(packed)
        clock.waiting += len(batch)
        then_us = self._timing.monotonic_us(now_us)
        row = WaitingRow(self._last, self._timing.boot, then_us, len(batch), packed)
        self._changes.waiting.append(row)

    @property
    def may_be_placed(self) -> bool:
        """Whether readings wait, and need not any more."""
        return self._agent.clock.trusted and self._agent.clock.waiting > 0

    def take(self, row: WaitingRow, now_us: int) -> Batch:
        """Return a batch that waits no more, for the intake, with the time at which it came."""
        self._agent.clock.waiting -= row.readings
        self._bytes -= len(row.batch)
        self._changes.placed.append(row.n)
        batch = Batch(*json.loads(row.batch, object_hook=_from_json))
        at = self._sources.row(batch.source)
        batch.cursor, batch.done = at.cursor, at.done
        batch.came_us = self._dated_us(row, now_us)
        if batch.came_us is None:
            left = batch.with_own_times()
            self._agent.counters.add("undated", len(batch) - len(left))
            batch = left
            batch.came_us = self._agent.clock.time_us(now_us)  # of no reading that is left
        return batch

    def _dated_us(self, row: WaitingRow, now_us: int) -> int | None:
        """Return when a batch came; None where nobody knows."""
        if row.boot == self._timing.boot:
            passed_us = self._timing.monotonic_us(now_us) - row.monotonic_us
            came_us = self._agent.clock.time_us(now_us) - passed_us
        elif row.boot in self._timing.boots:
            came_us = row.monotonic_us + self._timing.boots[row.boot]
        else:
            return None
        return came_us if row.boot or came_us >= EARLIEST_US else None

    def take_changes(self) -> Changes | None:
        if not (self._changes.waiting or self._changes.placed):
            return None
        taken, self._changes = self._changes, Changes()
        return taken


def _as_json(value: Any) -> Any:
    """Return a value as JSON: an exact number stays exact, and what nobody knows is its text."""
    if isinstance(value, Fraction | Decimal):
        return {"/": Fraction(value).as_integer_ratio()}
    if isinstance(value, Retraction):
        return {"retracted": value.value}
    return str(value)


def _from_json(table: dict[str, Any]) -> Any:
    if "retracted" in table:
        return Retraction(table["retracted"])
    ratio = table.get("/")
    return Fraction(*ratio) if type(ratio) is list else table
