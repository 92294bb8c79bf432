"""Stages: what one stream makes of others, as deltas.

`push` takes how the sources change, and returns how that changes the outputs of the stage. The law
of all stages: its outputs of a content and a delta are its outputs of the content, changed by
what `push` returns. So a chain of stages needs no other rule, and revisions go through it.

    >>> from lasp_edge.ordered.places import reading_place
    >>> warm = FilterStage(lambda event: event.value > 5)
    >>> place, event = reading_place("x", "", 6, 1), Event("x", 6, 1, "pi-1", {})
    >>> def kind(old, new):
    ...     (change,) = warm.push([{place: (old and event._replace(value=old),
    ...                                     new and event._replace(value=new))}]).values() or [None]
    ...     return change and tuple(each and each.value for each in change)
    >>> kind(6, 8), kind(6, 4), kind(4, 6)
    ((6, 8), (6, None), (None, 6))

Source: the four cases of a filter after Borealis (see `deltas`).
"""

import heapq
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Any, ClassVar, Protocol

from lasp_edge.errors import pass_interrupt
from lasp_edge.event import Event
from lasp_edge.folds.numbers import Resolution
from lasp_edge.ordered.calling import Failures, values_of
from lasp_edge.ordered.deltas import Delta, join_into, netted
from lasp_edge.ordered.log import Checkpoint, ItemChange, ScanLog
from lasp_edge.ordered.outputs import LogName, Output
from lasp_edge.ordered.places import Place, child_place
from lasp_edge.ordered.plain import plain_of
from lasp_edge.ordered.scan import Scan

KeyOf = Callable[[Event[Any]], str]
_place_of = itemgetter(0)


class KeyLog(Protocol):
    """The items of one key of a scan; see `ScanLog`."""

    steps: int

    @property
    def due_us(self) -> int | None: ...
    def __len__(self) -> int: ...
    def apply(self, changes: Sequence[ItemChange], frontier_us: int | None) -> Delta: ...
    def advance(self, frontier_us: int) -> Delta: ...
    def cut(self, time_us: int) -> Checkpoint: ...


class StreamStage(ABC):
    """One step from streams to a stream.

    Attributes:
        operator: what it is, by the name of the method that declares it.
        failures: of its functions.
        has_inserted: it has events of which the next `push` gives the outputs.
    """

    operator: ClassVar[str]
    has_inserted = False

    def __init__(self) -> None:
        self.failures = Failures()

    @abstractmethod
    def push(self, deltas: Sequence[Delta], frontier_us: int | None = None) -> Delta:
        """Take how each source changes; return how the outputs change.

        Args:
            deltas: one for each source.
            frontier_us: nothing older is expected.
        """

    def advance(self, frontier_us: int) -> Delta:  # noqa: ARG002 - most stages have no timers
        """Return what time alone brings before the frontier."""
        return {}

    def cut(self, time_us: int) -> dict[str, Checkpoint]:
        """Let go what lies before a time that the frontier has passed.

        Returns:
            Where each key goes on, of a stage with keys.
        """
        self.failures.cut(time_us)
        return {}


class StatelessStage(StreamStage):
    """A function of single events."""

    @abstractmethod
    def outputs(self, place: Place, event: Event[Any]) -> Iterable[Output]:
        """Return the outputs of the event at a place; it may raise anything."""

    def push(self, deltas: Sequence[Delta], frontier_us: int | None = None) -> Delta:  # noqa: ARG002
        gone: dict[Place, Event[Any]] = {}
        come: dict[Place, Event[Any]] = {}
        for place, (old, new) in deltas[0].items():
            if old is not None:
                gone.update(self._outputs(place, old))
            if new is not None:
                come.update(self._outputs(place, new))
            else:
                self.failures.passed(place)
        return netted(gone, come)

    def _outputs(self, place: Place, event: Event[Any]) -> Iterable[Output]:
        try:
            outputs = self.outputs(place, event)
        except BaseException as error:  # noqa: BLE001 - a user's function may raise anything
            self.failures.note(place, error)
            return ()
        self.failures.passed(place)
        return outputs


class MapStage(StatelessStage):
    """Each event with another value, which a function gives of it, at its place.

    Args:
        resolution: the step of the values: each is rounded to it once, and is that everywhere.
    """

    operator = "map"

    def __init__(
        self,
        function: Callable[[Event[Any]], Any],
        name: str = "map",
        resolution: Resolution | None = None,
    ) -> None:
        super().__init__()
        self.function, self.name, self.resolution = function, name, resolution

    def outputs(self, place: Place, event: Event[Any]) -> Iterable[Output]:
        value = _in_steps(plain_of(self.function(event)), self.resolution)
        return ((place, event._replace(name=self.name, value=value)),)


def _in_steps(value: Any, resolution: Resolution | None) -> Any:
    """Return a value that a function gave, rounded to the step, if there is one."""
    if resolution is None:
        return value
    if value is None:
        raise ValueError("None is no number; leave such events out, by program.filter before this")
    return resolution.nearest(value)


class FilterStage(StatelessStage):
    """The events for which a predicate holds, each at its place."""

    operator = "filter"

    def __init__(self, predicate: Callable[[Event[Any]], Any]) -> None:
        super().__init__()
        self.predicate = predicate

    def outputs(self, place: Place, event: Event[Any]) -> Iterable[Output]:
        return ((place, event),) if self.predicate(event) else ()


class FlatMapStage(StatelessStage):
    """Any number of events for each, with values that a function gives of it, in their order."""

    operator = "flat_map"

    def __init__(
        self,
        function: Callable[[Event[Any]], Any],
        name: str = "flat_map",
        resolution: Resolution | None = None,
    ) -> None:
        super().__init__()
        self.function, self.name, self.resolution = function, name, resolution

    def outputs(self, place: Place, event: Event[Any]) -> Iterable[Output]:
        values = [_in_steps(each, self.resolution) for each in values_of(self.function, event)]
        return [
            (child_place(place, n), event._replace(name=self.name, value=value))
            for n, value in enumerate(values)
        ]


class UnionStage(StreamStage):
    """The events of several streams; where one stream comes on several ways, once for each."""

    operator = "union"

    def push(self, deltas: Sequence[Delta], frontier_us: int | None = None) -> Delta:  # noqa: ARG002
        return {
            child_place(place, branch): change
            for branch, delta in enumerate(deltas)
            for place, change in delta.items()
        }


class ScanStage(StreamStage):
    """A scan over the events of each key.

    Args:
        scan: what steps them.
        name: the stream's.
        key: gives the key of an event; None: all have one key.
        device: the device that what timers say is of.

    Attributes:
        logs: by key.
    """

    operator = "scan"

    def __init__(
        self, scan: Scan, name: str = "scan", key: KeyOf | None = None, device: str = ""
    ) -> None:
        super().__init__()
        self.scan, self.name, self.key, self.device = scan, name, key, device
        self._timed = scan.timed
        self.logs: dict[str, KeyLog] = {}
        self._due_us: dict[str, int] = {}
        self._timers: list[tuple[int, str]] = []

    @property
    def steps(self) -> int:
        """How often `step` was called."""
        return sum(log.steps for log in self.logs.values())

    def push(self, deltas: Sequence[Delta], frontier_us: int | None = None) -> Delta:
        return self._applied(self._by_key(deltas[0]), frontier_us)

    def _applied(
        self, keyed: tuple[dict[str, list[ItemChange]], bool], frontier_us: int | None
    ) -> Delta:
        """Let the logs take what `_by_key` gave; return how that changes the outputs."""
        whole: Delta = {}
        by_key, moved = keyed
        for key, changes in by_key.items():
            log = self.logs.get(key)
            if log is None:
                log = self.log(key)
            delta = log.apply(changes, frontier_us)
            if moved:
                join_into(whole, delta)
            elif whole:
                whole |= delta
            else:
                whole = delta
            if self._timed:
                self._set_timer(key)
        return whole

    def log(self, key: str, base: Checkpoint | None = None) -> KeyLog:
        """Return the log of a key; a new one goes on from `base`, if it is given."""
        log = self.logs.get(key)
        if log is None:
            log = self.logs[key] = self._made_log(key, base)
            self._set_timer(key)
        return log

    def _made_log(self, key: str, base: Checkpoint | None) -> "KeyLog":
        named = LogName(self.name, key, self.device)
        return ScanLog(self.scan, named, self.failures, base)

    @property
    def due_us(self) -> int | None:
        """When the next timer rings, if nothing comes before; None: never."""
        return min(self._due_us.values(), default=None)

    def _by_key(self, delta: Delta) -> tuple[dict[str, list[ItemChange]], bool]:
        """Return the changes of each key, in the order of their places.

        And whether an event may have moved from one key to another.
        """
        news = [new for _, new in delta.values()]
        if self.key is None:
            return {"": sorted(zip(delta, news, strict=True), key=_place_of)}, False
        if any([old is not None for old, _ in delta.values()]):  # noqa: C419 - faster
            return self._each_by_key(self.key, delta)
        try:
            keys = list(map(self.key, news))
        except BaseException as error:  # noqa: BLE001 - a user's function may raise anything
            pass_interrupt(error)
            return self._each_by_key(self.key, delta)
        if not keys or keys.count(keys[0]) < len(keys):
            return self._each_by_key(self.key, delta)
        return {keys[0]: sorted(zip(delta, news, strict=True), key=_place_of)}, False

    def _each_by_key(  # noqa: C901 - failing functions, moves and keys are one decision each
        self, key: KeyOf, delta: Delta
    ) -> tuple[dict[str, list[ItemChange]], bool]:
        """Return what `_by_key` does, of events whose keys are asked for one after the other."""
        moved = False
        found: dict[str, list[ItemChange]] = {}
        for place, (old, new) in delta.items():
            after = None
            if new is not None:
                try:
                    after = key(new)
                except BaseException as error:  # noqa: BLE001 - a user's function may raise anything
                    self.failures.note(place, error)
            if old is not None:
                before = self._key_of(key, place, old)
                if new is None:
                    self.failures.passed(place)
                if before is not None and before != after:
                    moved = True
                    found.setdefault(before, []).append((place, None))
            if after is not None:
                changes = found.get(after)
                if changes is None:
                    changes = found[after] = []
                changes.append((place, new))
        for changes in found.values():
            changes.sort(key=_place_of)
        return found, moved

    def _key_of(self, key: KeyOf, place: Place, event: Event[Any]) -> str | None:
        """Return the key of an event; None where it is not known."""
        try:
            return key(event)
        except BaseException as error:  # noqa: BLE001 - a user's function may raise anything
            self.failures.note(place, error)
            return None

    def _set_timer(self, key: str) -> None:
        if not self._timed:
            return
        due_us = self.logs[key].due_us
        if due_us is None:
            self._due_us.pop(key, None)
        elif self._due_us.get(key) != due_us:
            self._due_us[key] = due_us
            heapq.heappush(self._timers, (due_us, key))

    def advance(self, frontier_us: int) -> Delta:
        changes: Delta = {}
        timers = self._timers
        while timers and timers[0][0] < frontier_us:
            due_us, key = heapq.heappop(timers)
            if self._due_us.get(key) == due_us:  # else it was set again meanwhile
                del self._due_us[key]
                changes |= self.logs[key].advance(frontier_us)
                self._set_timer(key)
        return changes

    def cut(self, time_us: int) -> dict[str, Checkpoint]:
        super().cut(time_us)
        return {key: log.cut(time_us) for key, log in sorted(self.logs.items())}
