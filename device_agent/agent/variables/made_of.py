"""Local folds that are made of others: their partials follow from those of the others, by key."""

from collections.abc import Callable, Iterable, Mapping

from device_agent.agent.state.counters import Guard
from lasp_edge.folds.columns import Partial
from lasp_edge.folds.derived import FoldOfFolds
from lasp_edge.language.declarations import LocalFold


class DerivedPartials:
    """The partials of folds of folds, on one device.

    Args:
        folds: the program's local folds.
        guard: counts what a user's function raises.
        partials: gives a local fold's partials by key, whatever it is made of.
        partial: gives one of them; None where the key is unknown.
    """

    def __init__(
        self,
        folds: Iterable[LocalFold],
        guard: Guard,
        partials: Callable[[str], Mapping[str, Partial]],
        partial: Callable[[str, str], Partial | None],
    ) -> None:
        self._guard, self._partials, self._partial = guard, partials, partial
        self._users: dict[str, list[LocalFold]] = {}
        for made in folds:
            for each in made.made_of:
                self._users.setdefault(each.name, []).append(made)

    def following(self, target: str) -> Iterable[LocalFold]:
        """Return the folds that are made of one."""
        return self._users.get(target, ())

    def of(self, made: LocalFold) -> dict[str, Partial]:
        """Return a fold's partials by key: those that one of its folds has."""
        keys = {key for each in made.made_of for key in self._partials(each.name)}
        found = ((key, self.at(made, key)) for key in sorted(keys))
        return {key: partial for key, partial in found if partial is not None}

    def at(self, made: LocalFold, key: str) -> Partial | None:
        """Return the partial of a key; None where its folds have nothing of it."""
        held = [self._partial(each.name, key) for each in made.made_of]
        if all(partial is None for partial in held):
            return None
        fold, pairs = made.fold, zip(made.made_of, held, strict=True)
        assert isinstance(fold, FoldOfFolds), "it is made of other folds"
        given = [each.fold.zero if partial is None else partial for each, partial in pairs]
        return self._guard.run(f"fold {made.name}", fold.of_partials, *given) or fold.zero
