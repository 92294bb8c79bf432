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
from typing import Any, Protocol

from device_agent.agent.agent import Agent
from device_agent.agent.changes import Changes
from device_agent.agent.clock import EARLIEST_US
from device_agent.agent.intake.batch import Batch
from device_agent.agent.intake.progress import SourceProgress
from device_agent.agent.parts import Part, StoreReader
from device_agent.agent.stored_rows import Retraction, WaitingRow, WaitingTotals
from device_agent.agent.timing.timing import Timing
from lasp_edge.timers import ALWAYS_US, NEVER_US

WAITING_BYTES = 16 << 20
"""Bytes of readings that wait, at most: some 200,000 readings, or two days at one a second. What
comes after them is refused and counted."""
PAGE_BYTES = 64 << 10
"""Bytes of readings that are placed in a tick, about: a thousand readings."""
FULL = "the clock is not trusted, and no more readings can wait"

UNREADABLE = "it waited for the clock, and cannot be read any more"


class ReadGate(Protocol):
    """The gate of sources that were read before."""

    @property
    def lets_read(self) -> bool:
        """Whether it may."""


class Waiting(Part):
    """The readings that wait until a clock is trusted.

    Args:
        agent: what all parts share.
        timing: dates them.
        sources: how far each source was read.
        gate: tells whether what was read before may be read.
        totals: what the store holds of them.

    Attributes:
        is_ready: some wait, and need not any more.
    """

    name = "waiting"

    def __init__(
        self,
        agent: Agent,
        timing: Timing,
        sources: SourceProgress,
        gate: ReadGate,
        totals: WaitingTotals,
    ) -> None:
        self._agent, self._timing, self._sources, self._gate = agent, timing, sources, gate
        self.is_ready = self.is_changed = False
        self._last, agent.clock.waiting, self._bytes = totals
        self._changes = Changes()

    def put(self, batch: Batch, now_us: int) -> bool:
        """Let a batch wait while no clock is trusted; return whether it does."""
        self._agent.clock.look(now_us)
        if not self._agent.clock.holds_back:
            return False
        self._keep(batch, now_us)
        return True

    def _keep(self, batch: Batch, now_us: int) -> None:
        """Keep a batch; its source has been read further."""
        counters, clock = self._agent.counters, self._agent.clock
        for reason, count in batch.refused.items():
            counters.add("refused", count)
            counters.add(f"refused: {reason}", count)
        self._sources.advance(batch, None, stamped=False)
        if not len(batch):
            return
        values = list(map(packed_value, batch.values))
        columns = (batch.source, batch.names, batch.times_us, values, batch.tags, batch.places)
        packed = json.dumps(columns, separators=(",", ":")).encode()
        if self._bytes + len(packed) > WAITING_BYTES:
            counters.add("refused", len(batch))
            counters.add(f"refused: {FULL}", len(batch))
            return
        self._last += 1
        self._bytes += len(packed)
        self.is_changed, self.due_us = True, ALWAYS_US
        clock.waiting += len(batch)
        then_us = self._timing.monotonic_us(now_us)
        row = WaitingRow(self._last, self._timing.boot, then_us, len(batch), packed)
        self._changes.waiting.append(row)

    def is_due(self, now_us: int) -> bool:
        """Return whether readings wait, and need not any more.

        A store that is an older image gives them again, so the fence is to let them pass.
        """
        clock = self._agent.clock
        if not clock.waiting:
            self.due_us = NEVER_US
            return False
        clock.look(now_us)
        self.is_ready = clock.trusted and self._gate.lets_read
        return self.is_ready

    def take_page(self, store: StoreReader, now_us: int) -> list[Batch]:
        """Return the first batches, which wait no more; once a tick."""
        self.is_ready = False
        run, rows = self._agent.guard.run, store.waiting(PAGE_BYTES)
        found = [run("waiting readings", self.take, row, now_us) for row in rows]
        return [batch for batch in found if batch is not None]

    def take(self, row: WaitingRow, now_us: int) -> Batch:
        """Return a batch that waits no more, for the intake, with the time at which it came."""
        self._agent.clock.waiting -= row.readings
        self._bytes -= len(row.batch)
        self.is_changed = True
        self._changes.placed.append(row.n)
        batch = self._unpacked(row)
        at = self._sources.row(batch.source)
        batch.cursor, batch.done = at.cursor, at.done
        batch.dated_us = self._dated_us(row, now_us)
        if batch.dated_us is None:
            left = batch.with_own_times()
            self._agent.counters.add("undated", len(batch) - len(left))
            batch = left
            batch.dated_us = self._agent.clock.time_us(now_us)  # of no reading that is left
        return batch

    def _unpacked(self, row: WaitingRow) -> Batch:
        try:
            source, names, times_us, values, tags, *places = json.loads(row.batch)
            columns = (names, times_us, list(map(unpacked_value, values)), tags)
            return Batch(source, *columns, places=places[0] if places else [])
        except Exception:
            self._agent.counters.add("refused", row.readings)
            self._agent.counters.add(f"refused: {UNREADABLE}", row.readings)
            raise

    def _dated_us(self, row: WaitingRow, now_us: int) -> int | None:
        """Return when a batch came; None where nobody knows."""
        if row.boot == self._timing.boot:
            passed_us = self._timing.monotonic_us(now_us) - row.monotonic_us
            dated_us = self._agent.clock.time_us(now_us) - passed_us
        elif row.boot in self._timing.boots:
            dated_us = row.monotonic_us + self._timing.boots[row.boot]
        else:
            return None
        return dated_us if row.boot or dated_us >= EARLIEST_US else None

    def take_changes(self) -> Changes | None:
        self.is_changed = False
        taken, self._changes = self._changes, Changes()
        return taken


_PLAIN = frozenset({float, bool, str, type(None)})
_PRINTED_BITS = 1_024
"""Bits of an integer that stands as its digits: of very long ones nobody prints them."""


def packed_value(value: Any) -> Any:
    """Return a value as JSON: an exact number stays exact.

    What stands in a table is ours, and never a table that a source gave: of what is no value only
    its type remains, for the intake refuses it whatever it is.

    >>> packed_value(20.5), packed_value(Fraction(-1, 30)), packed_value({"/": ["1", "0"]})
    (20.5, {'/': ('-1', '1e')}, {'none': 'dict'})
    """
    kind = type(value)
    if kind in _PLAIN or (kind is int and value.bit_length() <= _PRINTED_BITS):
        return value
    if kind is Decimal:
        return {"decimal": str(value)}
    if kind is int or kind is Fraction:
        above, below = value.as_integer_ratio()
        return {"/": (f"{above:x}", f"{below:x}")}
    if kind is Retraction:
        return {"retracted": packed_value(value.value)}
    return {"none": kind.__name__}


def unpacked_value(packed: Any) -> Any:
    """Return the value; in place of what is no value, a list, which is no value either."""
    if type(packed) is not dict:
        return packed
    ((kind, value),) = packed.items()
    if kind == "retracted":
        return Retraction(unpacked_value(value))
    if kind == "decimal":
        return Decimal(value)
    if kind == "/":  # an earlier release wrote integers
        return Fraction(*[int(part, 16) if type(part) is str else part for part in value])
    return [value]
