"""Sliding totals: the combination of partials that come and go, without folding what stays again.

Three structures, chosen by what the fold declares (its combine is commutative, so none of them has
to keep an order):

- with an inverse a total is kept: what goes is **retracted**. O(1).
- first in, first out, without an inverse: **two stacks** (`TwoStacks`). Pushed partials are
  totalled as they come; when the oldest is wanted they are turned over, each with the total of all
  that are younger. O(1) amortised.
- in any order, without an inverse: a balanced **tree** whose leaves are the partials and whose
  inner nodes are the combinations of their two children. O(log n).

    >>> from lasp_edge import folds
    >>> devices = keyed(folds.max())
    >>> for device, value in [("a", 5), ("b", 9), ("a", 7)]:
    ...     devices.put(device, (value,))
    >>> devices.total
    (9,)
    >>> devices.discard("b")
    >>> devices.total, len(devices)
    ((7,), 1)

Every total equals the fold of what is there, by recomputation; that is the law they are tested
against. Their partials may be totals of many samples each.

A fold of the user's own may raise where it combines. A total by key then knows all partials still,
and is made again when it is asked for: so nothing but asking for the total ever raises.

Source: Tangwongsan, Hirzel, Schneider and Wu, "General Incremental Sliding-Window Aggregation",
VLDB 2015 (the tree, FlatFAT); Hirzel, Schneider and Tangwongsan, "Sliding-Window Aggregation
Algorithms", DEBS 2017 (two stacks).
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable
from functools import reduce

from lasp_edge.errors import pass_interrupt
from lasp_edge.folds.columns import Partial
from lasp_edge.folds.fold import Fold


class Keyed(ABC):
    """The total of one partial a key; keys come, change and go in any order."""

    __slots__ = ("_fold", "_stale")

    def __init__(self, fold: Fold) -> None:
        self._fold = fold
        self._stale = False

    @property
    def total(self) -> Partial:
        """The combination of all partials; the fold's zero without any.

        What a fold of the user's own raises is passed on.
        """
        if self._stale:
            self._recombine()
            self._stale = False
        return self._kept_total

    @property
    @abstractmethod
    def _kept_total(self) -> Partial:
        """The total as it is kept, unless it is stale."""

    @abstractmethod
    def _recombine(self) -> None:
        """Make the total from all partials."""

    @abstractmethod
    def put(self, key: Hashable, partial: Partial) -> None:
        """Add the partial of a key, or replace it."""

    @abstractmethod
    def discard(self, key: Hashable) -> None:
        """Take a key's partial away, if it has one."""

    def _failed(self, error: BaseException) -> None:
        """Note that the fold raised an error: the total is stale."""
        pass_interrupt(error)
        self._stale = True

    @abstractmethod
    def __len__(self) -> int:
        """Return how many keys have a partial."""


def keyed(fold: Fold) -> Keyed:
    """Return the total by key that suits the fold."""
    return RetractedKeys(fold) if fold.invertible else TreeOfKeys(fold)


class RetractedKeys(Keyed):
    """A total by key for a fold with an inverse: O(1)."""

    __slots__ = ("_partials", "_total")

    def __init__(self, fold: Fold) -> None:
        super().__init__(fold)
        self._partials: dict[Hashable, Partial] = {}
        self._total = fold.zero

    @property
    def _kept_total(self) -> Partial:
        return self._total

    def _recombine(self) -> None:
        self._total = reduce(self._fold.combine, self._partials.values(), self._fold.zero)

    def put(self, key: Hashable, partial: Partial) -> None:
        self.discard(key)
        self._partials[key] = partial
        try:
            self._total = self._fold.combine(self._total, partial)
        except BaseException as error:  # noqa: BLE001 - a user's function may raise anything
            self._failed(error)

    def discard(self, key: Hashable) -> None:
        gone = self._partials.pop(key, None)
        if gone is not None:
            try:
                self._total = self._fold.retract(self._total, gone)
            except BaseException as error:  # noqa: BLE001 - a user's function may raise anything
                self._failed(error)

    def __len__(self) -> int:
        return len(self._partials)


class TreeOfKeys(Keyed):
    """A total by key for any fold: O(log n).

    The nodes of a complete binary tree stand in one list: node 1 is the root, the children of node
    `i` are `2 * i` and `2 * i + 1`, the second half are the leaves. The keys have the first leaves,
    the others hold the zero; the last key moves into the leaf of one that goes.
    """

    __slots__ = ("_keys", "_leaves", "_nodes")

    def __init__(self, fold: Fold) -> None:
        super().__init__(fold)
        self._keys: list[Hashable] = []
        self._leaves: dict[Hashable, int] = {}
        self._nodes: list[Partial] = [fold.zero, fold.zero]

    @property
    def _kept_total(self) -> Partial:
        return self._nodes[1]

    def put(self, key: Hashable, partial: Partial) -> None:
        leaf = self._leaves.get(key)
        if leaf is None:
            leaf = len(self._keys)
            if leaf == self._width:
                self._resize(2 * leaf)
            self._leaves[key] = leaf
            self._keys.append(key)
        self._set(leaf, partial)

    def discard(self, key: Hashable) -> None:
        leaf = self._leaves.pop(key, None)
        if leaf is None:
            return
        last, width = self._keys.pop(), self._width
        partial = self._nodes[width + len(self._keys)]
        self._set(len(self._keys), self._fold.zero)
        if last != key:
            self._keys[leaf], self._leaves[last] = last, leaf
            self._set(leaf, partial)
        if 1 < width > 4 * len(self._keys):
            self._resize(width // 2)

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def _width(self) -> int:
        return len(self._nodes) // 2

    def _set(self, leaf: int, partial: Partial) -> None:
        nodes, combine = self._nodes, self._fold.combine
        node = self._width + leaf
        nodes[node] = partial
        try:
            while node > 1:
                node //= 2
                nodes[node] = combine(nodes[2 * node], nodes[2 * node + 1])
        except BaseException as error:  # noqa: BLE001 - a user's function may raise anything
            self._failed(error)

    def _resize(self, width: int) -> None:
        """Make room for `width` leaves, in O(width), which as many puts or discards paid for."""
        held, zero = self._nodes[self._width : self._width + len(self._keys)], self._fold.zero
        self._nodes = [zero] * width + held + [zero] * (width - len(held))
        try:
            self._recombine()
        except BaseException as error:  # noqa: BLE001 - a user's function may raise anything
            self._failed(error)

    def _recombine(self) -> None:
        nodes, combine = self._nodes, self._fold.combine
        for node in range(self._width - 1, 0, -1):
            nodes[node] = combine(nodes[2 * node], nodes[2 * node + 1])


class TwoStacks:
    """The total of partials that leave in the order in which they came: O(1) amortised.

    `_older` holds the partials that leave next, last first, each with the total of itself and of
    what stands before it there; `_younger` the others, with one total.
    """

    __slots__ = ("_fold", "_older", "_younger", "_younger_total")

    def __init__(self, fold: Fold) -> None:
        self._fold = fold
        self._older: list[tuple[Partial, Partial]] = []
        self._younger: list[Partial] = []
        self._younger_total = fold.zero

    @property
    def total(self) -> Partial:
        """The combination of all partials; the fold's zero without any."""
        older = self._older[-1][1] if self._older else self._fold.zero
        return self._fold.combine(older, self._younger_total)

    def push(self, partial: Partial) -> None:
        """Add the youngest partial."""
        self._younger.append(partial)
        self._younger_total = self._fold.combine(self._younger_total, partial)

    def pop(self) -> Partial:
        """Take the oldest partial away and return it.

        Raises:
            IndexError: the queue is empty.
        """
        if not self._older:
            self._turn_over()
        if not self._older:
            raise IndexError("pop from an empty queue")
        return self._older.pop()[0]

    def __len__(self) -> int:
        return len(self._older) + len(self._younger)

    def _turn_over(self) -> None:
        total = self._fold.zero
        while self._younger:
            partial = self._younger.pop()
            total = self._fold.combine(partial, total)
            self._older.append((partial, total))
        self._younger_total = self._fold.zero
