"""The local fold: the partial of what a set holds on this device, kept up to date as it changes.

The partial is of what the set holds *now*, and falls when samples go: it is assigned, never joined.
A bounded set is a window over one device's samples, and they leave it in the order in which they
came. A small window is folded again when it changes. A large one slides: with an inverse what went
is retracted and what came is combined; without one it keeps two stacks. Both give what folding
again gives, and where much changed, or the fold failed the last time, it is folded again.

Elements of any other set come and go in any order, so each keeps its partial as long as it is in.

    >>> from crdts import BoundedLWWSet, Replica
    >>> from lasp_edge import folds
    >>> window, total = BoundedLWWSet(bound=2), WindowFold(folds.sum())
    >>> for value in (5, 6, 1):
    ...     moved = window.join_changes(window.add(Replica(1, 7, "kitchen"), value, time_us=0))
    ...     _ = total.update(window, moved)
    >>> total.partial
    (7,)

Source: Christopher Meiklejohn, Seyed Hossein Haeri, Peter Van Roy, "Declarative, Sliding Window
Aggregations for Computations at the Edge", EdgeCom 2016.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

from crdts import BoundedLWWSet
from crdts.bounded_state import HeldSample
from lasp_edge.aggregates.sliding import TwoStacks, keyed
from lasp_edge.errors import pass_interrupt
from lasp_edge.folds.columns import Partial
from lasp_edge.folds.fold import Fold

SLIDE_FROM = 256
"""The least number of samples of a window that slides; folding fewer again takes some 20 us."""

Moved = tuple[list[HeldSample], list[HeldSample]]
"""The samples that came to a window and those that left it, oldest first."""

Lifted = int | tuple[int, int]
"""What a fold lifts for an element: a value, or (value, time_us)."""


class FoldError(Exception):
    """A fold raised an error, or its partial is out of range; the partial stays as it was."""


class WindowFold:
    """The partial of a bounded set.

    Attributes:
        partial: of the samples that the set held when it was last folded.
    """

    __slots__ = ("_queue", "_slides", "fold", "partial")

    def __init__(self, fold: Fold) -> None:
        self.fold = fold
        self.partial = fold.zero
        self._slides = False
        self._queue: TwoStacks | None = None

    def update(self, state: BoundedLWWSet, moved: Moved | None) -> bool:
        """Fold a changed set; return whether the partial is another one now.

        `moved` is what came and went since the last time; None: fold it again.

        A set with a hole is not folded: the partial stays what it was.

        Raises:
            FoldError: see there.
        """
        slides, self._slides = self._slides, False
        if not state.complete:
            return False
        try:
            if moved is not None and slides and 4 * (len(moved[0]) + len(moved[1])) < len(state):
                partial = self._slid(state, moved)
            else:
                self._queue = None
                partial = _folded(self.fold, state.samples())
            fits = self.fold.within_limits(partial)
        except BaseException as error:
            pass_interrupt(error)
            raise FoldError from error
        if not fits:
            raise FoldError
        self._slides = len(state) >= SLIDE_FROM
        changed, self.partial = partial != self.partial, partial
        return changed

    def _slid(self, state: BoundedLWWSet, moved: Moved) -> Partial:
        fold, (came, went) = self.fold, moved
        if fold.invertible:
            return fold.combine(
                fold.retract(self.partial, _folded(fold, went)), _folded(fold, came)
            )
        if self._queue is None:
            self._queue = TwoStacks(fold)
            came, went = state.samples(), []
        for time_us, value, _ in came:
            self._queue.push(fold.lift(value, time_us))
        for _ in went:
            self._queue.pop()
        return self._queue.total


def _folded(fold: Fold, samples: Sequence[HeldSample]) -> Partial:
    return fold.lift_column(list(map(_value, samples)), list(map(_time_us, samples)))


_time_us, _value = itemgetter(0), itemgetter(1)


class ElementsFold:
    """The partial of a set's elements, each of which has a partial of its own.

    Attributes:
        partial: of the elements that are in, without those that the fold could not take.
    """

    __slots__ = ("_kept", "_sample", "fold", "partial")

    def __init__(self, fold: Fold, sample: Callable[[Any], Lifted]) -> None:
        self.fold = fold
        self.partial = fold.zero
        self._sample = sample
        self._kept = keyed(fold)

    def move(self, came: Iterable[Any], went: Iterable[Any]) -> int:
        """Combine new elements and retract removed ones; return how many the fold refused."""
        for element in went:
            self._kept.discard(element)
        return sum(not self._put(element) for element in came)

    def _put(self, element: Any) -> bool:
        try:
            sample = self._sample(element)
            value, time_us = sample if isinstance(sample, tuple) else (sample, 0)
            partial = self.fold.lift(value, time_us)
            fits = self.fold.within_limits(partial)
        except BaseException as error:  # noqa: BLE001 - a user's function may raise anything
            pass_interrupt(error)
            return False
        if fits:
            self._kept.put(element, partial)
        return fits

    def update(self) -> bool:
        """Bring the partial up to date; return whether it is another one now.

        Raises:
            FoldError: see there.
        """
        try:
            total = self._kept.total
            fits = self.fold.within_limits(total)
        except BaseException as error:
            pass_interrupt(error)
            raise FoldError from error
        if not fits:
            raise FoldError
        changed, self.partial = total != self.partial, total
        return changed


class WindowFolds:
    """The folds of all windows of one device, by target and key.

    Args:
        folds: variable -> target -> fold, in the order of their changes.
    """

    __slots__ = ("_failures", "_folds", "_kept")

    def __init__(self, folds: Mapping[str, Mapping[str, Fold]]) -> None:
        self._folds = folds
        self._kept: dict[str, dict[str, WindowFold]] = {
            target: {} for targets in folds.values() for target in targets
        }
        self._failures: list[tuple[str, BaseException]] = []

    def partials(self, target: str) -> dict[str, Partial]:
        """Return a target's partials by key, sorted."""
        kept = self._kept[target]
        return {key: kept[key].partial for key in sorted(kept)}

    def partial(self, target: str, key: str) -> Partial | None:
        """Return a target's partial of one key; None where the key is unknown."""
        known = self._kept[target].get(key)
        return None if known is None else known.partial

    def refold(
        self,
        moved: Mapping[str, Mapping[str, Moved | None]],
        sets: Mapping[str, Mapping[str, BoundedLWWSet]],
    ) -> Iterator[tuple[str, str, Partial | None]]:
        """Bring the partials up to date; yield (target, key, partial) where one changed.

        Args:
            moved: variable -> key -> what came and went; None: fold it again.
            sets: variable -> key -> samples; a partial whose key is gone is yielded as None.
        """
        for name in sorted(moved):
            for target, fold in self._folds.get(name, {}).items():
                for key in sorted(moved[name]):
                    state = sets[name].get(key)
                    if state is None:
                        if self._kept[target].pop(key, None) is not None:
                            yield target, key, None
                    elif self._refolded(target, key, fold, state, moved[name][key]):
                        yield target, key, self._kept[target][key].partial

    def _refolded(
        self, target: str, key: str, fold: Fold, state: BoundedLWWSet, moved: Moved | None
    ) -> bool:
        kept = self._kept[target]
        known = kept.get(key)
        window = WindowFold(fold) if known is None else known
        try:
            changed = window.update(state, moved)
        except FoldError as error:
            cause = error.__cause__ or ValueError("the partial is out of range")
            self._failures.append((target, cause))
            return False
        if known is None and state.complete:
            kept[key] = window
            return True
        return changed

    def take_failures(self) -> list[tuple[str, BaseException]]:
        """Return (target, error) of the folds that failed since the last time, once a failure."""
        taken, self._failures = self._failures, []
        return taken
