"""Folds in a dataflow: one partial of a set on each device, and the combination over the fleet.

The target of a fold is assigned, never joined: it says what its input holds *now*, and falls when
elements go. Each element is lifted once and taken out again when it goes, by the fold's inverse or
by a tree, so a change costs O(1) or O(log n). While a window has a hole (a delta that has not
arrived yet), its fold keeps the partial of before.

What `fold_dynamic` combines are the devices' newest partials: an `OwnedMap` that only its owners
write. It reads nothing else but the membership, so whoever has heard the same has the same.

Source: Christopher Meiklejohn, Seyed Hossein Haeri, Peter Van Roy, "Declarative, Sliding Window
Aggregations for Computations at the Edge", EdgeCom 2016.
"""

from collections.abc import Callable
from typing import Any

from crdts import Lattice, Membership, OwnedMap, Replica
from lasp_edge.dataflow.definition import Sample
from lasp_edge.dataflow.nodes import Changes, Node
from lasp_edge.dataflow.relation import Change
from lasp_edge.folds.columns import Partial
from lasp_edge.folds.fold import Fold
from lasp_edge.folds.sliding import keyed

Sampled = int | tuple[int, int]
"""What a fold is to take for an element: a value, or (value, time_us)."""


def sample_of(element: Any) -> Sampled:
    """Return what a fold takes for an element unless it is told otherwise.

    Raises:
        ValueError: the element is neither a sample nor an integer.
    """
    if type(element) is Sample:
        return element.value, element.time_us
    if type(element) is int:
        return element
    raise ValueError(f"a fold needs integers or samples, got {element!r}; say which, as sample=")


class Assigned(Node):
    """A derived variable that is no set: its partial replaces the one before."""

    def __init__(self, name: str, sources: tuple[Node, ...], fold: Fold) -> None:
        super().__init__(name, sources)
        self.fold = fold
        self.partial: Partial = fold.zero
        self._kept = keyed(fold)
        self._handled = 0

    @property
    def dynamic(self) -> bool:
        return True

    @property
    def value(self) -> Any:
        return self.partial

    @property
    def touched(self) -> int:
        return self._handled

    @property
    def why_shrinks(self) -> str:
        return f"{self.name!r} is assigned by a fold, and a partial has no order in which it grows"

    def whole(self) -> Change:
        return Change()


class Folded(Assigned):
    """The partial of what a set holds on this device.

    Attributes:
        entries: the newest partial of every device that was heard of, once it is published.
        unsent: this device's own news of it.
    """

    def __init__(
        self,
        name: str,
        source: Node,
        fold: Fold,
        sample: Callable[[Any], Sampled],
        replica: Replica,
    ) -> None:
        super().__init__(name, (source,), fold)
        self.entries = OwnedMap()
        self.unsent = OwnedMap()
        self._sample = sample
        self._replica = replica
        self._seq = 0
        self._published = False

    def step(self, changes: Changes) -> Change | None:
        change = changes[self.sources[0].name]
        for element in change.removed:
            self._kept.discard(element)
        for element in change.added:
            self._put(element)
        self._handled += len(change.removed) + len(change.added)
        if not self.complete:
            return None
        total = self._kept.total
        if total == self.partial:
            return None
        if not self.fold.within_limits(total):
            self.failures += 1
            return None
        self.partial = total
        return Change(entries=self._put_own() if self._published else {})

    def _put(self, element: Any) -> None:
        try:
            sample = self._sample(element)
            value, time_us = sample if isinstance(sample, tuple) else (sample, 0)
            partial = self.fold.lift(value, time_us)
            fits = self.fold.within_limits(partial)
        except Exception:  # noqa: BLE001 - a user's function may raise anything
            fits, partial = False, self.fold.zero
        if fits:
            self._kept.put(element, partial)
        else:
            self.failures += 1

    def publish(self) -> dict[str, Partial]:
        """Keep this device's entry from now on; return the entries that are here."""
        if not self._published:
            self._published = True
            self._put_own()
        return self.entries.value

    def _put_own(self) -> dict[str, Partial]:
        self._seq += 1
        delta = self.entries.put(self._replica, self._seq, self.partial)
        self.entries |= delta
        self.unsent |= delta
        return {self._replica.device: self.entries.entries[self._replica.device].payload}

    def receive(self, delta: Lattice) -> Change | None:
        """Join other devices' entries; return what that changed.

        Raises:
            ValueError: they are no such entries, or nobody combines them here.
        """
        if not self._published:
            raise ValueError(
                f"{self.name!r} belongs to each device alone: no fold_dynamic reads it"
            )
        if not isinstance(delta, OwnedMap):
            came = type(delta).__name__
            raise ValueError(f"{self.name!r} needs an OwnedMap of partials, got {came}")
        for device, entry in delta.entries.items():
            if not isinstance(entry.payload, tuple) or not self.fold.within_limits(entry.payload):
                raise ValueError(
                    f"{self.name!r} needs partials of {self.fold}, got {entry.payload!r} "
                    f"of {device!r}"
                )
        before = {device: self.entries.entries.get(device) for device in sorted(delta.entries)}
        self.entries |= delta
        after = self.entries.entries
        news = {d: after[d].payload for d, entry in before.items() if after[d] != entry}
        return Change(entries=news) if news else None

    def whole(self) -> Change:
        return Change(entries=self.publish())


class DynamicFolded(Assigned):
    """The combination of the partials of all devices that are not retired."""

    def __init__(self, name: str, source: Folded, members: Node | None) -> None:
        sources = (source,) if members is None else (source, members)
        super().__init__(name, sources, source.fold)
        self._members = members
        self._retired: set[str] = set()

    def step(self, changes: Changes) -> Change | None:
        entries = self._entries
        news = set(changes.get(self.sources[0].name, Change()).entries)
        retired = self._retired_now()
        news |= {device for device in retired ^ self._retired if device in entries}
        self._retired = retired
        self._combine(sorted(news))
        total = self._kept.total
        if total == self.partial:
            return None
        self.partial = total
        return Change()

    @property
    def _entries(self) -> dict[str, Any]:
        assert isinstance(self.sources[0], Folded)
        return self.sources[0].entries.entries

    def _retired_now(self) -> set[str]:
        state = self._members.state if self._members is not None else None
        return set(state.retired) if isinstance(state, Membership) else set()

    def _combine(self, devices: list[str]) -> None:
        self._handled += len(devices)
        for device in devices:
            if device in self._retired:
                self._kept.discard(device)
            else:
                self._kept.put(device, self._entries[device].payload)
