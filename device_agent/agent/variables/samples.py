"""A device's samples, and what is folded from them: one bounded set and one partial for each key.

Samples come from the program's handlers and collections. After each tick the local folds are up to
date, and partials that changed are this device's new entries of their variable.
"""

from collections.abc import Iterable, Mapping

from crdts import BoundedLWWSet, ControlLog, Membership
from device_agent.agent.agent import Agent
from device_agent.agent.changes import VariableId
from device_agent.agent.parts import Part
from device_agent.agent.variables.budget import FrameBudget
from device_agent.agent.variables.published_fold import PublishedFold
from device_agent.agent.variables.sets import Sets
from lasp_edge.aggregates.absence import PresentFold
from lasp_edge.aggregates.fleet import FleetFold
from lasp_edge.aggregates.local import WindowFolds
from lasp_edge.folds.bounds import NewestBound, of_samples
from lasp_edge.folds.columns import Partial
from lasp_edge.folds.fold import Fold
from lasp_edge.language.declarations import DynamicFold

TIME_LIMIT_US = 2**61
"""Microseconds since the epoch, either way: 73,000 years, and a set's integers hold it."""


class Samples(Part):
    """The samples of one device.

    Args:
        agent: what all parts share.

    Attributes:
        variables: the names of the variables that hold samples.
        published: the fleet's entries of the local folds that travel, by target.
        moves: target of a local fold -> how many partials of it changed since the start.
    """

    name = "samples"

    def __init__(self, agent: Agent) -> None:
        plan = agent.plan
        self._guard, self._clock, self._plan = agent.guard, agent.clock, plan
        self.published = {n: PublishedFold(agent, f) for n, f in plan.published_folds.items()}
        self.moves = dict.fromkeys(plan.local_folds, 0)
        bounded = [v for v in plan.own_variables.values() if isinstance(v.bottom, BoundedLWWSet)]
        self.variables = frozenset(variable.name for variable in bounded)
        self._sets = Sets(agent, bounded)
        folds: dict[str, dict[str, Fold]] = {variable.name: {} for variable in bounded}
        for name, made in sorted(plan.local_folds.items()):
            folds[made.source.name][name] = of_samples(made.fold)
        self._local = WindowFolds(folds)
        self._targets = {name: list(targets) for name, targets in folds.items()}
        self._fallible = {
            name: [fold for fold in targets.values() if not fold.is_built_in]
            for name, targets in folds.items()
        }
        for variable in bounded:
            self._sets.restore(variable.name)
        self._budgets = {v.name: self._budget(v.name) for v in bounded if v.keyed}

    def _budget(self, name: str) -> FrameBudget:
        folds = [p.fold.fold for p in self.published.values() if p.fold.source.name == name]
        budget = FrameBudget(name, folds)
        for key, state in self._sets.held[name].items():
            budget.settle(key, len(state))
        return budget

    def partials(self, target: str) -> dict[str, Partial]:
        """Return a local fold's partials by key; a variable without keys has the key ""."""
        return {
            key: self._bounded(target, key, p) for key, p in self._local.partials(target).items()
        }

    def keys(self, name: str) -> list[str]:
        """Return the keys of which a variable holds samples."""
        return list(self._sets.held[name])

    def partial(self, target: str, key: str) -> Partial | None:
        """Return a local fold's partial of one key; None where the key is unknown."""
        partial = self._local.partial(target, key)
        return None if partial is None else self._bounded(target, key, partial)

    def _bounded(self, target: str, key: str, partial: Partial) -> Partial:
        """Return this device's partial of a key, with the bound that is in force."""
        made = self._plan.local_folds[target]
        bound = self._sets.bound((made.source.name, key))
        if bound is None or not isinstance(made.fold, NewestBound):
            return partial
        return made.fold.under(bound, partial)

    def hear(self, log: ControlLog) -> None:
        """Take the operators' schedules of the bounds of sets."""
        self._sets.hear(log)

    def counting(self, fold: DynamicFold) -> FleetFold | PresentFold:
        """Return the entries that a dynamic fold combines."""
        entries = self.published[fold.source.name].entries
        if fold.absence is None:
            return entries
        return PresentFold(entries, self.published[fold.absence.name].entries)

    def check(self, name: str, key: str, value: int, time_us: int) -> None:
        """Check that a sample can be added to a variable, and reserve the bytes it needs.

        Raises:
            ValueError: it cannot.
        """
        if type(time_us) is not int or not -TIME_LIMIT_US < time_us < TIME_LIMIT_US:
            raise ValueError(f"add to {name!r}: a time in microseconds is needed")
        for fold in self._fallible[name]:
            if not fold.within_limits(fold.lift(value, time_us)):
                raise ValueError(f"add to {name!r}: the partial is out of range")
        if name in self._budgets:
            self._budgets[name].reserve(key, self._sets.samples(name, key))

    def record(
        self, samples: Mapping[VariableId, tuple[list[int], list[int]]], accepted_us: int
    ) -> None:
        """Add checked samples of keys, values and times, all accepted together."""
        for where, (values, times_us) in sorted(samples.items()):
            if values:
                self._sets.add(where, values, times_us, accepted_us)
        for name, budget in self._budgets.items():  # what was reserved becomes what they need
            for key in budget.take_reserved():
                budget.settle(key, self._sets.samples(name, key))

    def set_membership(self, membership: Membership, about: Iterable[str]) -> None:
        """Let the entries of retired devices count no more, and those of all others count."""
        for published in self.published.values():
            published.entries.set_membership(membership, about)

    def tick(self, now_us: int) -> None:
        """Drop samples that are too old, and bring the local folds up to date."""
        for name, key in self._sets.expire(self._clock.time_us(now_us)):
            if name in self._budgets:
                self._budgets[name].settle(key, self._sets.samples(name, key))
        self.refold()

    def refold(self) -> None:
        """Bring the local folds up to date."""
        put = set()
        for target, key, partial in self._local.refold(self._sets.take_moved(), self._sets.held):
            put.add((target, key))
            self._put(target, key, partial)
        for name, key in self._sets.take_rebound():
            for target in self._targets[name]:
                partial = self._local.partial(target, key)
                if partial is not None and (target, key) not in put:
                    self._put(target, key, partial)
        for target, error in self._local.take_failures():
            self._guard.failed(f"fold {target}", error)

    def _put(self, target: str, key: str, partial: Partial | None) -> None:
        """Take a new partial of a local fold; None where its key is gone."""
        self.moves[target] += 1
        published = self.published.get(target)
        if published is not None:
            own = None if partial is None else self._bounded(target, key, partial)
            published.put_own(key, own)
