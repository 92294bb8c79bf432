"""The nodes of `fold` and `fold_dynamic`: assigned, a partial replaces the one before.

They compute with `lasp_edge.aggregates`, from one change to the next. `fold_dynamic` reads
nothing but the devices' newest partials and the membership, so whoever has received the same has
the same.
"""

from collections.abc import Callable
from typing import Any

from crdts import BoundedLWWSet, Entry, Lattice, Membership, OwnedMap, Replica, Sample
from crdts.bounded_state import HeldSample
from lasp_edge.aggregates.fleet import FleetFold
from lasp_edge.aggregates.local import ElementsFold, FoldError, Lifted, WindowFold
from lasp_edge.dataflow.nodes import ChangesByName, Node
from lasp_edge.dataflow.relation import Change
from lasp_edge.folds.columns import Partial
from lasp_edge.folds.fold import Fold


def sample_of(element: Any) -> Lifted:
    """Return what a fold takes for an element by default.

    Raises:
        ValueError: the element is neither a sample nor an integer.
    """
    if type(element) is Sample:
        return element.value, element.time_us
    if type(element) is int:
        return element
    raise ValueError(f"a fold needs integers or samples, got {element!r}; say which, as sample=")


class Assigned(Node):
    """A derived variable that is not a set: its partial replaces the one before."""

    def __init__(self, name: str, sources: tuple[Node, ...], fold: Fold) -> None:
        super().__init__(name, sources)
        self.fold = fold
        self.partial: Partial = fold.zero
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
        entries: the newest partial of every known device, once it is published.
        unsent: this device's own entry, where others still lack it.
    """

    def __init__(
        self,
        name: str,
        source: Node,
        fold: Fold,
        sample: Callable[[Any], Lifted],
        replica: Replica,
    ) -> None:
        super().__init__(name, (source,), fold)
        self.entries = OwnedMap()
        self.unsent = OwnedMap()
        self._sample = sample
        self._replica = replica
        self._seq = 0
        self._published = False
        self._kept = self._begun()

    def _begun(self) -> WindowFold | ElementsFold:
        if isinstance(self.sources[0].state, BoundedLWWSet) and self._sample is sample_of:
            return WindowFold(self.fold)
        return ElementsFold(self.fold, self._sample)

    def replace_source(self, old: Node, new: Node) -> None:
        super().replace_source(old, new)
        self._kept = self._begun()  # nothing was written to what is replaced

    def step(self, changes: ChangesByName) -> Change | None:
        change = changes[self.sources[0].name]
        self._handled += len(change.removed) + len(change.added)
        try:
            changed = self._moved(change)
        except FoldError:
            self.failures += 1
            return None
        if not changed:
            return None
        self.partial = self._kept.partial
        return Change(entries=self._put_own() if self._published else {})

    def _moved(self, change: Change) -> bool:
        """Take in what changed in the source; return whether the partial did."""
        if isinstance(self._kept, WindowFold):
            window = self.sources[0].state
            assert isinstance(window, BoundedLWWSet)
            # Only a cloned device's samples are replaced before they are the oldest.
            in_order = all(sample.seq <= window.lo for sample in change.removed)
            moved = _samples(change.added), _samples(change.removed)
            return self._kept.update(window, moved if in_order else None)
        self.failures += self._kept.move(change.added, change.removed)
        return self.complete and self._kept.update()

    def publish(self) -> dict[str, Entry]:
        """Keep this device's entry from now on; return the entries that are here."""
        if not self._published:
            self._published = True
            self._put_own()
        return self.entries.entries

    def _put_own(self) -> dict[str, Entry]:
        self._seq += 1
        delta = self.entries.put(self._replica, self._seq, (("", self._seq, self.partial),))
        self.entries |= delta
        self.unsent |= delta
        return delta.entries

    def receive(self, delta: Lattice) -> Change | None:
        """Join other devices' entries; return what that changed.

        Raises:
            ValueError: they are not entries of this fold, or nobody combines them here.
        """
        if not self._published:
            raise ValueError(
                f"{self.name!r} belongs to each device alone: no fold_dynamic reads it"
            )
        if not isinstance(delta, OwnedMap):
            given = type(delta).__name__
            raise ValueError(f"{self.name!r} needs an OwnedMap of partials, got {given}")
        for device, entry in delta.entries.items():
            if not self._is_row(entry.payload):
                raise ValueError(
                    f"{self.name!r} needs one partial of {self.fold} as (('', seq, partial),), "
                    f"got {entry.payload!r} of {device!r}"
                )
        news = delta - self.entries
        self.entries |= news
        return Change(entries=news.entries) if news.entries else None

    def _is_row(self, payload: Any) -> bool:
        """Return whether a payload is what `FleetFold` holds for a device."""
        row = payload[0] if type(payload) is tuple and len(payload) == 1 else None
        if type(row) is not tuple or len(row) != 3 or row[0] != "" or type(row[1]) is not int:  # noqa: PLR2004
            return False
        return type(row[2]) is tuple and row[1] > 0 and self.fold.within_limits(row[2])

    def whole(self) -> Change:
        return Change(entries=self.publish())


class DynamicFolded(Assigned):
    """The combination of the partials of all devices that are not retired."""

    def __init__(self, name: str, source: Folded, members: Node | None) -> None:
        sources = (source,) if members is None else (source, members)
        super().__init__(name, sources, source.fold)
        self._members = members
        self._fleet = FleetFold(source.fold)

    def step(self, changes: ChangesByName) -> Change | None:
        source = changes.get(self.sources[0].name)
        if source is not None:
            self._handled += len(source.entries)
            self._fleet.join(0, OwnedMap(source.entries))
        if self._members is not None and self._members.name in changes:
            membership = self._members.state
            assert isinstance(membership, Membership)
            self._fleet.set_membership(membership)
        total = self._fleet.total("").partial
        if total == self.partial:
            return None
        self.partial = total
        return Change()


def _samples(elements: list[Sample]) -> list[HeldSample]:
    return [(sample.time_us, sample.value, sample.time_us) for sample in sorted(elements)]
