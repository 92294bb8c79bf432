"""A device's samples, and what is folded from them: one bounded set and one partial for each key.

Samples come from the program's handlers and collections. After each tick the local folds are up to
date, and partials that changed are this device's new entries of their variable.

A variable without keys is one with the key "". A key comes with its first sample, and goes when all
its samples are too old. The cost of a change does not depend on the number of keys: keys that
expire wait in a heap, changes are remembered for the folds, and a set of an earlier incarnation is
adopted when it is first written to, not before.
"""

from collections.abc import Iterable, Mapping, Sequence
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from crdts import BoundedLWWSet, ControlLog, Membership
from crdts.bounded_state import HeldSample
from device_agent.agent.agent import Agent
from device_agent.agent.changes import Changes, Facts
from device_agent.agent.parts import Part
from device_agent.agent.state.stored import UNREADABLE
from device_agent.agent.stored_rows import VariableId
from device_agent.agent.variables.budget import FrameBudget
from device_agent.agent.variables.made_of import DerivedPartials
from device_agent.agent.variables.published_fold import PublishedFold
from lasp_edge.aggregates.absence import PresentFold
from lasp_edge.aggregates.fleet import FleetFold
from lasp_edge.aggregates.local import SLIDE_FROM, Moved, WindowFolds
from lasp_edge.folds.bounds import NewestBound, of_samples
from lasp_edge.folds.columns import Partial
from lasp_edge.folds.fold import Fold
from lasp_edge.language.declarations import DynamicFold
from lasp_edge.variables import Variable

TIME_LIMIT_US = 2**61
"""Microseconds since the epoch, either way: 73,000 years, and a set's integers hold it."""

if TYPE_CHECKING:
    from device_agent.agent.variables.bounds import SampleBounds
    from lasp_edge.folds.bounds import Bound


class Sets:
    """The bounded sets of one device.

    Args:
        agent: what all parts share.
        variables: the dynamic variables that are bounded sets.

    Attributes:
        held: variable -> key -> set.
        moved: variable -> key -> what happened since `take_moved`; None: fold all of it again.
    """

    def __init__(self, agent: Agent, variables: Sequence[Variable]) -> None:
        self._agent, self._stored = agent, agent.stored
        self._variables = {variable.name: variable for variable in variables}
        self._bounds = _bounds(agent, variables)
        self._rebound: set[tuple[str, str]] = set()
        self._heap: list[tuple[int, str, str]] = []
        self._due: dict[tuple[str, str], int] = {}
        self._latest_us = 2**62  # nothing is known of the clock that stamped what the store holds
        self.held: dict[str, dict[str, BoundedLWWSet]] = {name: {} for name in self._variables}
        self.moved: dict[str, dict[str, Moved | None]] = {name: {} for name in self._variables}

    def restore(self, name: str) -> None:
        """Take a variable's sets from the store."""
        bottom = self._bottom(name)
        keyed = self._variables[name].keyed
        for key, state in self._stored.take(name, bottom).items():
            if isinstance(state, BoundedLWWSet) and (state or not keyed):
                if self._bounds is not None and name in self._bounds:
                    self._bounds.restore((name, key), state)
                self._resize((name, key), state, self.bound((name, key)))
                self.held[name][key] = state
                self._schedule(name, key, state)
            else:
                if state is None:
                    self._agent.counters.note(UNREADABLE)
                self._stored.remove((name, key))
        if self._bounds is not None and name in self._bounds:
            self._bounds.keep(name, self.held[name])
        if not keyed:
            self.held[name].setdefault("", bottom)
        self.moved[name] = dict.fromkeys(self.held[name])

    def _resize(self, where: tuple[str, str], state: BoundedLWWSet, given: "Bound | None") -> bool:
        """Put the program's limits in force, or an operator's; return whether others were."""
        bottom = self._bottom(where[0])
        bound = bottom.bound if given is None else given.samples
        if (state.bound, state.max_age_s) == (bound, bottom.max_age_s):
            return False
        control = state.control_version + 1
        state |= state.resized(bound, control, bottom.max_age_s)
        self._stored.put_whole(where, state)
        return True

    def bound(self, where: tuple[str, str]) -> "Bound | None":
        """Return the bound of a key's set; None where operators cannot change it."""
        if self._bounds is None or where[0] not in self._bounds:
            return None
        return self._bounds.of(where)

    def hear(self, log: ControlLog) -> None:
        """Take the operators' schedules of bounds."""
        if self._bounds is None:
            return
        known = [(n, k) for n, held in self.held.items() if n in self._bounds for k in held]
        before = {where: self._bounds.of(where) for where in known}
        self._bounds.hear(log)
        for name, key in known:
            if self._bounds.of((name, key)) != before[name, key]:
                self._rebound.add((name, key))
                self._bounds.reach((name, key))
                if self._resize((name, key), self.held[name][key], self._bounds.of((name, key))):
                    self.moved[name][key] = None

    def take_reached(self) -> dict[str, dict[str, int]]:
        """Return what is to be stored of the times at which sets have reached their bounds."""
        return {} if self._bounds is None else self._bounds.take_changed()

    def take_rebound(self) -> list[tuple[str, str]]:
        """Return the keys whose bound became another one since the last time, in order."""
        taken, self._rebound = sorted(self._rebound), set()
        return taken

    def samples(self, name: str, key: str) -> int:
        """Return how many samples a key has."""
        state = self.held[name].get(key)
        return 0 if state is None else len(state)

    def add(
        self, where: VariableId, values: Sequence[int], times_us: Sequence[int], accepted_us: int
    ) -> None:
        """Add samples to one key of a variable, all accepted together."""
        if self._bounds is None or where[0] not in self._bounds:
            self._add(where, values, times_us, accepted_us)
            return
        name, key = where
        before = self._bounds.of(where)
        for first, end, bound in self._bounds.cut(where, times_us):
            state = self.held[name].setdefault(key, self._bottom(name))
            if bound != before:
                self._rebound.add(where)
                self._bounds.reach(where)
            if self._resize(where, state, bound):
                self.moved[name][key] = None
            self._add(where, values[first:end], times_us[first:end], accepted_us)

    def _add(
        self, where: VariableId, values: Sequence[int], times_us: Sequence[int], accepted_us: int
    ) -> None:
        name, key = where
        state = self.held[name].get(key)
        if state is None:
            state = self.held[name][key] = self._bottom(name)
        replica = self._agent.replica
        adopts = state.replica != replica
        delta = state.add_many(replica, values, times_us, accepted_us)
        come, gone = state.join_changes(delta)
        if adopts:
            self.moved[name][key] = None
            self._stored.put_whole(where, state)
        else:
            self._move(name, key, come, gone)
            self._stored.put_delta(where, state, delta)
        if state.limits.max_age_us and where not in self._due:
            self._schedule(name, key, state)

    def expire(self, now_us: int) -> list[tuple[str, str]]:
        """Drop samples that are too old, and keys without others; return the keys that were due."""
        if now_us < self._latest_us:
            self._look_at_all(now_us)
        self._latest_us = now_us
        looked_at = []
        while self._heap and self._heap[0][0] <= now_us:
            due_us, name, key = heappop(self._heap)
            if self._due.get((name, key)) != due_us:
                continue
            del self._due[name, key]
            looked_at.append((name, key))
            state = self.held[name][key]
            delta = state.expire(now_us)
            if delta.lo > state.lo:
                self._move(name, key, *state.join_changes(delta))
                self._stored.put_delta((name, key), state, delta)
            if not state and self._variables[name].keyed:
                del self.held[name][key]
                if self._bounds is not None:
                    self._bounds.forget((name, key))
                self.moved[name][key] = None
                self._stored.remove((name, key))
            else:
                self._schedule(name, key, state)
        return looked_at

    def _look_at_all(self, now_us: int) -> None:
        """Let all sets be due: their samples may be stamped by a clock that was ahead."""
        self._due = dict.fromkeys(self._due, now_us)
        self._heap = [(now_us, *where) for where in self._due]

    def take_moved(self) -> dict[str, dict[str, Moved | None]]:
        """Return what happened since the last time, by variable and key."""
        moved, self.moved = self.moved, {name: {} for name in self._variables}
        return moved

    def _bottom(self, name: str) -> BoundedLWWSet:
        bottom = self._variables[name].bottom
        assert isinstance(bottom, BoundedLWWSet)
        return bottom.bottom()

    def _move(self, name: str, key: str, come: list[HeldSample], gone: list[HeldSample]) -> None:
        moved = self.moved[name]
        size = len(self.held[name][key])
        known = moved.get(key, ([], []))
        if known is None or size < SLIDE_FROM or len(known[0]) + len(come) > size:
            moved[key] = None
            return
        known[0].extend(come)
        known[1].extend(gone)
        moved[key] = known

    def _schedule(self, name: str, key: str, state: BoundedLWWSet) -> None:
        """Note when the oldest sample will be too old."""
        if state and state.limits.max_age_us:
            oldest = state.items.get(state.lo + 1) or state.samples()[0]
            due_us = oldest[2] + state.limits.max_age_us + 1
            self._due[name, key] = due_us
            heappush(self._heap, (due_us, name, key))


def _bounds(agent: Agent, variables: Sequence[Variable]) -> "SampleBounds | None":
    """Return the bounds that operators change; without any a device does without the module."""
    if not any(variable.bound for variable in variables):
        return None
    from device_agent.agent.variables.bounds import SampleBounds  # noqa: PLC0415 - see above

    facts = agent.facts
    given = (facts.control or ControlLog(), facts.reached or {})
    return SampleBounds(variables, agent.plan.parameters, *given)


class Samples(Part):
    """The samples of one device.

    Args:
        agent: what all parts share.

    Attributes:
        variables: the names of the variables that hold samples.
        published: the fleet's entries of the local folds that travel, by target.
        sets: the samples themselves.
        moves: target of a local fold -> how many partials of it changed since the start.
    """

    name = "samples"

    def __init__(self, agent: Agent) -> None:
        plan = agent.plan
        self._guard, self._clock, self._plan = agent.guard, agent.clock, plan
        self._notices = agent.notices
        self.published = {n: PublishedFold(agent, f) for n, f in plan.published_folds.items()}
        self.moves = dict.fromkeys(plan.local_folds, 0)
        bounded = [v for v in plan.own_variables.values() if isinstance(v.bottom, BoundedLWWSet)]
        self.variables = frozenset(variable.name for variable in bounded)
        self.sets = Sets(agent, bounded)
        self.is_changed = any(variable.bound for variable in bounded)
        folds: dict[str, dict[str, Fold]] = {variable.name: {} for variable in bounded}
        every = plan.local_folds.values()
        self._derived = DerivedPartials(every, agent.guard, self.partials, self.partial)
        for name, made in sorted(plan.local_folds.items()):
            if not made.made_of:
                folds[made.source.name][name] = of_samples(made.fold)
        self._local = WindowFolds(folds)
        self._targets = {name: list(targets) for name, targets in folds.items()}
        self._fallible = {
            name: [fold for fold in targets.values() if not fold.is_built_in]
            for name, targets in folds.items()
        }
        for variable in bounded:
            self.sets.restore(variable.name)
        self._budgets = {v.name: self._budget(v.name) for v in bounded if v.keyed}

    def _budget(self, name: str) -> FrameBudget:
        folds = [p.fold.fold for p in self.published.values() if name in p.fold.sources]
        budget = FrameBudget(name, folds)
        for key, state in self.sets.held[name].items():
            budget.settle(key, len(state))
        return budget

    def partials(self, target: str) -> dict[str, Partial]:
        """Return a local fold's partials by key; a variable without keys has the key ""."""
        made = self._plan.local_folds[target]
        if made.made_of:
            return self._derived.of(made)
        return {
            key: self._bounded(target, key, p) for key, p in self._local.partials(target).items()
        }

    def partial(self, target: str, key: str) -> Partial | None:
        """Return a local fold's partial of one key; None where the key is unknown."""
        made = self._plan.local_folds[target]
        if made.made_of:
            return self._derived.at(made, key)
        partial = self._local.partial(target, key)
        return None if partial is None else self._bounded(target, key, partial)

    def _bounded(self, target: str, key: str, partial: Partial) -> Partial:
        """Return this device's partial of a key, with the bound that is in force."""
        made = self._plan.local_folds[target]
        bound = self.sets.bound((made.source.name, key))
        if bound is None or not isinstance(made.fold, NewestBound):
            return partial
        return made.fold.under(bound, partial)

    def hear(self, log: ControlLog) -> None:
        """Take the operators' schedules of the bounds of sets."""
        self.sets.hear(log)

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
            self._budgets[name].reserve(key, self.sets.samples(name, key))

    def record(
        self, samples: Mapping[VariableId, tuple[list[int], list[int]]], accepted_us: int
    ) -> None:
        """Add checked samples of keys, values and times, all accepted together."""
        for where, (values, times_us) in sorted(samples.items()):
            if where[0] in self._budgets:  # it has keys
                self._notices.look_at_key(f"variable {where[0]}", where[1])
            if values:
                self.sets.add(where, values, times_us, accepted_us)
        for name, budget in self._budgets.items():  # what was reserved becomes what they need
            for key in budget.take_reserved():
                budget.settle(key, self.sets.samples(name, key))

    def set_membership(self, membership: Membership, about: Iterable[str]) -> None:
        """Let the entries of retired devices count no more, and those of all others count."""
        for published in self.published.values():
            published.entries.set_membership(membership, about)

    def tick(self, now_us: int) -> None:
        """Drop samples that are too old, and bring the local folds up to date."""
        for name, key in self.sets.expire(self._clock.time_us(now_us)):
            if name in self._budgets:
                self._budgets[name].settle(key, self.sets.samples(name, key))
        self.refold()

    def take_changes(self) -> Changes | None:
        reached = self.sets.take_reached()
        return Changes(facts=Facts(reached=reached)) if reached else None

    def refold(self) -> None:
        """Bring the local folds up to date."""
        moved = self.sets.take_moved()
        put = self._fold(moved) if any(moved.values()) else set()
        for name, key in self.sets.take_rebound():
            for target in self._targets[name]:
                partial = self._local.partial(target, key)
                if partial is not None and (target, key) not in put:
                    self._put(target, key, partial)

    def _fold(self, moved: Mapping[str, Mapping[str, Moved | None]]) -> set[tuple[str, str]]:
        """Fold what came and went; return the targets and keys whose partial changed."""
        put = set()
        for target, key, partial in self._local.refold(moved, self.sets.held):
            put.add((target, key))
            self._put(target, key, partial)
        for target, error in self._local.take_failures():
            self._guard.failed(f"fold {target}", error)
        return put

    def _put(self, target: str, key: str, partial: Partial | None) -> None:
        """Take a new partial of a local fold; None where its key is gone."""
        self.moves[target] += 1
        published = self.published.get(target)
        if published is not None:
            own = None if partial is None else self._bounded(target, key, partial)
            published.put_own(key, own)
        for made in self._derived.following(target):
            self._put(made.name, key, self._derived.at(made, key))
