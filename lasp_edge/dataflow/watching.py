"""Watchers: who waits for a variable, follows it, guards it or wants to know that it is wanted.

Nothing here changes a variable. When a change has run through the whole graph, what is due is put
in line and then called, so that every callback sees all variables after the change. A callback may
change variables again: that runs at once, and what it makes due stands at the end of the line.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple

from lasp_edge.dataflow.nodes import Node, in_order
from lasp_edge.dataflow.reads import Callback, Read
from lasp_edge.dataflow.relation import Change
from lasp_edge.dataflow.thresholds import Threshold


class News(NamedTuple):
    """The effect of a change on a variable, for its followers.

    Of a set: the added and removed elements. Of any other variable: the new value was added and
    the one before removed; None stands for no value.

    >>> from crdts import GSet, Replica
    >>> from lasp_edge.dataflow import Dataflow
    >>> dataflow = Dataflow(Replica(1, 7, "kitchen"))
    >>> seen = dataflow.declare(GSet(), "seen")
    >>> dataflow.stream(seen, print)
    >>> dataflow.update(seen, GSet.add, "attic")
    News(variable='seen', added=('attic',), removed=())
    """

    variable: str
    added: tuple[Any, ...]
    removed: tuple[Any, ...]


Follower = Callable[[News], None]


class _Waiting(NamedTuple):
    threshold: Threshold
    settle: Callback


class _Stream:
    __slots__ = ("follower", "last")

    def __init__(self, follower: Follower) -> None:
        self.follower = follower
        self.last: Any = None


class _Guard:
    __slots__ = ("broken", "enforce", "predicate")

    def __init__(self, predicate: Callable[[Any], bool], enforce: Callback) -> None:
        self.predicate = predicate
        self.enforce = enforce
        self.broken = False


class Watchers:
    """All who watch the variables of one dataflow."""

    def __init__(self) -> None:
        self._waiting: dict[str, list[_Waiting]] = {}
        self._streams: dict[str, list[_Stream]] = {}
        self._guards: dict[str, list[_Guard]] = {}
        self._wanted: dict[str, Any] = {}
        self._sleepers: dict[str, list[Read]] = {}
        self._due: deque[Callable[[], None]] = deque()
        self._running = False

    def awaits(self, names: Iterable[str]) -> list[str]:
        """Return those of `names` that somebody waits for."""
        return [name for name in names if self._waiting.get(name)]

    def wait(self, node: Node, threshold: Threshold, settle: Callback) -> None:
        """Call `settle` with the value once `node` meets the threshold; now if it does."""
        if threshold.met(node):
            settle(node.value)
        else:
            self._waiting.setdefault(node.name, []).append(_Waiting(threshold, settle))

    def follow(self, node: Node, follower: Follower) -> None:
        """Call `follower` for what is here and for every change."""
        stream = _Stream(follower)
        self._streams.setdefault(node.name, []).append(stream)
        self._tell(stream, node, node.whole())
        self.run()

    def guard(self, node: Node, predicate: Callable[[Any], bool], enforce: Callback) -> None:
        """Call `enforce` with the value whenever `predicate` stops to hold for it."""
        guard = _Guard(predicate, enforce)
        self._guards.setdefault(node.name, []).append(guard)
        self._due.append(partial(self._check, guard, node))
        self.run()

    def sleep(self, name: str, read: Read) -> None:
        """Settle `read` with the threshold as soon as somebody wants the variable."""
        if name in self._wanted:
            read.settle(self._wanted[name])
        else:
            self._sleepers.setdefault(name, []).append(read)

    def want(self, names: Iterable[str], threshold: Any) -> None:
        """Note that somebody wants these variables."""
        for name in names:
            self._wanted.setdefault(name, threshold)
            for read in self._sleepers.pop(name, ()):
                self._due.append(partial(read.settle, threshold))
        self.run()

    def changed(self, nodes: Mapping[str, Node], changes: Mapping[str, Change]) -> None:
        """Put in line what these changes make due; `run` calls it."""
        for name, change in changes.items():
            node = nodes[name]
            for stream in self._streams.get(name, ()):
                self._tell(stream, node, change)
            if name in self._waiting:
                self._settle(node)
            for guard in self._guards.get(name, ()):
                self._due.append(partial(self._check, guard, node))

    def _tell(self, stream: _Stream, node: Node, change: Change) -> None:
        if node.is_set:
            added, removed = tuple(in_order(change.added)), tuple(in_order(change.removed))
        else:
            before, stream.last = stream.last, node.value
            if before == stream.last:
                return
            added, removed = _known(stream.last), _known(before)
        if added or removed:
            news = News(node.name, added, removed)
            self._due.append(partial(stream.follower, news))

    def _settle(self, node: Node) -> None:
        waiting = self._waiting.pop(node.name)
        met = [waiter.threshold.met(node) for waiter in waiting]
        if not all(met):
            self._waiting[node.name] = [
                w for w, is_met in zip(waiting, met, strict=True) if not is_met
            ]
        if any(met):
            value = node.value
            for waiter, is_met in zip(waiting, met, strict=True):
                if is_met:
                    self._due.append(partial(waiter.settle, value))

    @staticmethod
    def _check(guard: _Guard, node: Node) -> None:
        value = node.value
        was, guard.broken = guard.broken, not guard.predicate(value)
        if guard.broken and not was:
            guard.enforce(value)

    def run(self) -> None:
        """Call what is due, in line, unless that is being done already.

        An exception of a callback is raised when the others were called; of several, the first.
        """
        if self._running:
            return
        failed: Exception | None = None
        self._running = True
        try:
            while self._due:
                try:
                    self._due.popleft()()
                except Exception as error:  # noqa: BLE001 - whatever it is, the others are due too
                    failed = failed or error
        finally:
            self._running = False
        if failed is not None:
            raise failed


def _known(value: Any) -> tuple[Any, ...]:
    return () if value is None else (value,)
