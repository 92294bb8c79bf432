"""Readings by column: the one way into the agent. A single reading is a batch of one.

Batches wait in memory until their commit is due (`HeldBatches`). Small ones of one source are then
taken in as one batch (`together`), in which each reading keeps the time at which it came.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, NamedTuple

from device_agent.agent.allowance import Allowance
from device_agent.agent.clock import EARLIEST_US
from lasp_edge.timers import is_time
from lasp_edge.units import SECOND_US

MOST_READINGS = 1_000
"""Held readings from which on they are due: a commit then costs little beside them, and memory
holds some 0.7 MB of them."""
BURST, RESERVE = 8, 3
"""Commits that may follow each other: some 100 kB. Three of them are for the readings before a
pause."""
LEAST_US = SECOND_US
"""Microseconds between two commits of readings, at least, where they are held at all."""
REST_US = 5 * SECOND_US
"""Microseconds without a reading after which the last one counts as the last for a while."""
COLUMN_LEAST = 8
"""Readings in a batch from which on columns are faster than one after the other: measured."""


@dataclass(slots=True)
class Batch:
    """Readings in arrival order; the columns are equally long.

    Attributes:
        source: the source's stable name; its cursor and watermark are kept under it.
        names: event names.
        times_us: own times, microseconds since the epoch; None is stamped on acceptance.
        values: as read; None where one is missing; a `Retraction` where one is taken back.
        tags: labels of each reading.
        cursor: where the source resumes once this batch is durable.
        cursor_unless_accepted: the same, as long as no reading of the source was accepted; None:
            `cursor`.
        refused: reason -> number of lines that gave no reading.
        done: the source is finished.
        places: what each reading came on (a topic), where its tags do not tell that: two sensors
            may agree, and a repeat comes on the same; empty: nothing tells readings apart.
        arrived_us: when it arrived, on the driver's clock; None: when it is read.
        dated_us: when it came, where it had to wait for the clock; readings without a time of their
            own are placed there.
        clocks_us: what time it was when each reading came, never falling; empty: all came at once.
    """

    source: str
    names: list[str]
    times_us: list[int | None]
    values: list[Any]
    tags: list[Mapping[str, str]]
    cursor: str | None = None
    refused: dict[str, int] = field(default_factory=dict)
    done: bool = False
    dated_us: int | None = None
    arrived_us: int | None = None
    places: list[str] = field(default_factory=list)
    cursor_unless_accepted: str | None = None
    clocks_us: Sequence[int] = ()

    def __len__(self) -> int:
        return len(self.names)

    def checked(self) -> int:
        """Return how many readings there are, after a check that the columns are equally long.

        Raises:
            ValueError: they are not.
        """
        count = len(self.names)
        if not count == len(self.times_us) == len(self.values) == len(self.tags):
            raise ValueError("names, times, values and tags of one length are needed")
        if self.places and len(self.places) != count:
            raise ValueError(f"{count} places are needed, one a reading, not {len(self.places)}")
        return count

    def split(self) -> list["Batch"]:
        """Return a batch for each reading; an empty list where the columns differ in length."""
        columns = (self.names, self.times_us, self.values, self.tags)
        if len({len(column) for column in columns}) > 1:
            return []
        dated_us = self.dated_us
        return [
            Batch(
                *(self.source, [name], [time_us], [value], [tags], self.cursor, {}, self.done),
                dated_us=None if dated_us is None else dated_us + at,
                places=self.places[at : at + 1],
            )
            for at, (name, time_us, value, tags) in enumerate(zip(*columns, strict=True))
        ]

    def last(self, count: int) -> "Batch":
        """Return its last readings, `count` at most, without cursor and refusals."""
        if len(self.names) <= count:
            return self
        names, times_us, values = self.names[-count:], self.times_us[-count:], self.values[-count:]
        return Batch(self.source, names, times_us, values, self.tags[-count:])

    def with_own_times(self) -> "Batch":
        """Return it with only those readings that carry their own time."""
        kept = [at for at, time_us in enumerate(self.times_us) if time_us is not None]
        columns: list[Sequence[Any]] = [self.names, self.times_us, self.values, self.tags]
        names, times_us, values, tags = ([column[at] for at in kept] for column in columns)
        places = [self.places[at] for at in kept] if self.places else []
        rest = (self.cursor, self.refused, self.done, self.dated_us)
        return Batch(self.source, names, times_us, values, tags, *rest, places=places)

    @property
    def has_own_times(self) -> bool:
        """Whether every reading has its own time, and there is at least one."""
        return set(map(type, self.times_us)) == {int}

    @property
    def is_stamped(self) -> bool:
        """Whether no reading has its own time, and there is at least one."""
        times_us = self.times_us
        return bool(times_us) and times_us[0] is None and times_us.count(None) == len(times_us)


class HeldBatch(NamedTuple):
    """A batch that waits.

    Attributes:
        at_us: when it was read.
        acknowledge: acknowledges the batch to its source once it is durable; None: to nobody.
    """

    batch: Batch
    at_us: int
    acknowledge: Callable[[], None] | None = None


def together(held: Iterable[HeldBatch], ahead_us: int) -> Iterator[HeldBatch]:
    """Yield batches to take in: small ones of one kind, one after the other, as one batch.

    Whole columns cost a fraction of the same readings one by one.

        >>> ats_us = EARLIEST_US, EARLIEST_US + 40
        >>> held = [HeldBatch(Batch("door", ["open"], [None], [1], [{}]), at) for at in ats_us]
        >>> [one] = together(held, 7)
        >>> one.batch.values, one.batch.clocks_us
        ([1, 1], [1000000000000007, 1000000000000047])

    Args:
        held: batches, in the order in which they came.
        ahead_us: what is to be added to the time at which they were read to get the right one.
    """
    for kind, run in groupby(held, _kind_of_small):
        several = list(run)
        ats_us = [at_us for _, at_us, _ in several]
        is_in_order = ats_us[0] >= EARLIEST_US and ats_us == sorted(ats_us)
        if kind is None or len(several) == 1 or not is_in_order:
            yield from several
            continue
        whole = Batch(kind[0], [], [], [], [], clocks_us=(clocks_us := list[int]()))
        for batch, at_us, _ in several:
            whole.names += batch.names
            whole.times_us += batch.times_us
            whole.values += batch.values
            whole.tags += batch.tags
            clocks_us += [at_us + ahead_us] * len(batch.names)
        last = several[-1].batch
        whole.cursor, whole.cursor_unless_accepted = last.cursor, last.cursor_unless_accepted
        yield HeldBatch(whole, ats_us[0])


def _kind_of_small(held: HeldBatch) -> tuple[str, bool] | None:
    """Return source of a small batch, and whether none of its readings has an own time.

    None for a large batch, one of readings with and without, and one that holds anything else.
    """
    batch = held.batch
    count, times_us = len(batch.names), batch.times_us
    if not count == len(times_us) == len(batch.values) == len(batch.tags) < COLUMN_LEAST:
        return None
    stamped = times_us.count(None)
    is_more = batch.refused or batch.done or batch.places or batch.dated_us is not None
    return None if is_more or stamped not in (0, count) else (batch.source, stamped > 0)


class HeldBatches:
    """The batches that wait for a commit, in the order in which they were read.

    Each commit writes some pages of the store, however little changed, and flash wears by pages. So
    readings that come one at a time are held, and taken in together. Nothing of them leaves the
    device, and no source takes them for durable, before they are: a crash loses what was held,
    which a source that can be read again gives again.

    The first readings after a pause are due at once, and so are the last ones before it; see
    `device_agent.agent.allowance`.

        >>> held = HeldBatches(every_us=60 * SECOND_US)
        >>> one = HeldBatch(Batch("door", ["open"], [None], [1], [{}]), 100)
        >>> held.add(one), held.is_due(100), held.take(100) == [one], held.is_due(100)
        (False, True, True, False)

    Args:
        every_us: time in which there is one commit of readings, in the long run; 0: every batch is
            due at once.
        pressing: the events that wait for nothing, since all others wait for them.
    """

    def __init__(self, every_us: int, pressing: frozenset[str] = frozenset()) -> None:
        self._pressing = pressing
        self._always = not every_us
        self._allowance = Allowance(max(1, every_us), LEAST_US, burst=BURST, reserve=RESERVE)
        self._batches: list[HeldBatch] = []
        self._readings = 0
        self._source_waits = self._always

    def __bool__(self) -> bool:
        return bool(self._batches)

    @property
    def since_us(self) -> int | None:
        """When the first of them was read; None where nothing is held."""
        return self._batches[0].at_us if self._batches else None

    def add(self, held: HeldBatch, *, is_pressing: bool = False) -> bool:
        """Hold a batch; return whether what is held must not wait for the next tick.

        It must not where one `is_pressing`: its source waits for its acknowledgement; and where one
        holds an event that all others wait for.
        """
        self._batches.append(held)
        self._readings += len(held.batch.names)
        self._source_waits |= is_pressing or held.batch.done
        names = held.batch.names
        if self._pressing and names:  # they are of any type: a source may give anything
            distinct = names[:1] if names.count(names[0]) == len(names) else names
            self._source_waits |= any(
                type(name) is str and name in self._pressing for name in distinct
            )
        return self._source_waits or self._readings >= MOST_READINGS

    def end(self) -> None:
        """Note that nothing more comes: what is held waits for nothing."""
        self._source_waits = True

    def is_due(self, now_us: int) -> bool:
        """Return whether something is held that the next tick is to commit."""
        if not self._batches:
            return False
        if self._source_waits or self._readings >= MOST_READINGS:
            return True
        return self._allowance.is_due(now_us, at_rest=self._is_at_rest(now_us))

    def take(self, now_us: int) -> list[HeldBatch]:
        """Return all of them; they are committed now."""
        if self._batches and not self._always:
            self._allowance.spend(now_us, at_rest=self._is_at_rest(now_us))
        taken, self._batches = self._batches, []
        self._readings, self._source_waits = 0, self._always
        return taken

    def _is_at_rest(self, now_us: int) -> bool:
        batches = self._batches
        return bool(batches) and is_time(now_us, batches[-1].at_us + REST_US, REST_US)
