"""Local folds: a device's own samples of one key, folded into one partial.

A small set is folded anew when it changes. A large one slides: with an inverse what went is
retracted and what came is combined; without one it keeps two stacks. Both give what folding anew
would give, and where much changed, or a fold failed the last time, it is folded anew.
"""

from collections.abc import Iterator, Mapping, Sequence

from crdts import BoundedLWWSet
from crdts.bounded_lww_set import Sample
from device_agent.fleet.sets import SLIDE_FROM, Moved
from lasp_edge.folds.columns import Partial
from lasp_edge.folds.fold import Fold
from lasp_edge.folds.sliding import Queue, queue
from lasp_edge.language.declarations import LocalFold


class LocalFolds:
    """The local folds of one device.

    Args:
        folds: by target name.

    Attributes:
        partials: target -> key -> partial.
        left_aside: what failed, for the counters; the caller clears it.
    """

    __slots__ = ("_folds", "_keyed", "_slides", "left_aside", "partials")

    def __init__(self, folds: Mapping[str, LocalFold]) -> None:
        self._folds: dict[str, list[LocalFold]] = {}
        for name in sorted(folds):
            self._folds.setdefault(folds[name].source.name, []).append(folds[name])
        self._keyed = {name for name, fold in folds.items() if fold.keyed}
        self._slides: dict[tuple[str, str], Queue | None] = {}  # of what was folded whole
        self.partials: dict[str, dict[str, Partial]] = {name: {} for name in folds}
        self.left_aside: list[str] = []

    def is_keyed(self, name: str) -> bool:
        """Return whether a target has keys."""
        return name in self._keyed

    def refold(
        self,
        moved: Mapping[str, Mapping[str, Moved | None]],
        sets: Mapping[str, Mapping[str, BoundedLWWSet]],
    ) -> Iterator[tuple[str, str, Partial | None]]:
        """Bring the partials up to date; yield (target, key, partial) where one changed.

        Args:
            moved: variable -> key -> what happened; None: fold it anew.
            sets: variable -> key -> samples; a partial whose key is gone is yielded as None.
        """
        for name in sorted(moved):
            keys = sorted(moved[name]) if moved[name] else ()
            for fold in self._folds.get(name, ()):
                partials = self.partials[fold.name]
                for key in keys:
                    state = sets[name].get(key)
                    if state is None:
                        self._slides.pop((fold.name, key), None)
                        if partials.pop(key, None) is not None:
                            yield fold.name, key, None
                        continue
                    partial = self._folded(fold, key, state, moved[name][key])
                    if partial is not None and partials.get(key) != partial:
                        partials[key] = partial
                        yield fold.name, key, partial

    def _folded(
        self, fold: LocalFold, key: str, state: BoundedLWWSet, moved: Moved | None
    ) -> Partial | None:
        """Return the fold of a state; None where it has a hole, or a user's fold fails on it."""
        at = (fold.name, key)
        if not state.complete:
            self._slides.pop(at, None)
            return None
        slides = moved is not None and at in self._slides
        try:
            if moved is not None and slides and 4 * (len(moved[0]) + len(moved[1])) < len(state):
                partial = self._slid(fold, key, state, moved)
            else:
                partial = _lifted(fold.fold, state.samples())
                if len(state) >= SLIDE_FROM:
                    self._slides[at] = None
            if fold.fold.within_limits(partial):
                return partial
        except Exception:  # noqa: BLE001, S110 - a user's fold may raise anything; it is counted
            pass
        self._slides.pop(at, None)
        self.left_aside.append(f"fold {fold.name}: failed, or out of range")
        return None

    def _slid(self, fold: LocalFold, key: str, state: BoundedLWWSet, moved: Moved) -> Partial:
        made, (come, gone) = fold.fold, moved
        if made.invertible:
            held = self.partials[fold.name][key]
            return made.combine(made.retract(held, _lifted(made, gone)), _lifted(made, come))
        slide = self._slides[fold.name, key]
        if slide is None:
            slide = self._slides[fold.name, key] = queue(made)
            come, gone = state.samples(), []
        for time_us, value, _ in come:
            slide.push(made.lift(value, time_us))
        for _ in gone:
            slide.pop()
        return slide.total


def _lifted(fold: Fold, samples: Sequence[Sample]) -> Partial:
    return fold.lift_column([value for _, value, _ in samples], [at_us for at_us, _, _ in samples])
