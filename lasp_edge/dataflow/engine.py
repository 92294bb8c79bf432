"""Dataflow: variables that are written, variables that follow from them, and those who watch.

A `Dataflow` holds the variables of one replica. Some are **written**: by this replica (`update`,
`bind`) and, where they are shared, by what others send (`receive`). The others are **derived** from
them by operators and change only with what they are made from, each once a change, in an order in
which none is seen half changed. A change costs what changed, not what there is.

It is pure: it reads no clock, draws no number, waits for nothing and sends nothing. `take_deltas`
gives what others should hear, `read` gives a `Read` that is settled later.

    >>> from crdts import ORSet, Replica
    >>> dataflow = Dataflow(Replica(1, 7, "kitchen"))
    >>> seen = dataflow.declare(ORSet(), "seen")
    >>> even = dataflow.filter(seen, lambda number: number % 2 == 0, "even")
    >>> tens = dataflow.map(even, lambda number: number // 10, "tens")
    >>> dataflow.update(seen, ORSet.add_many, [12, 14, 21])
    >>> dataflow.query(tens)
    frozenset({1})
    >>> dataflow.update(seen, "remove", 12)
    >>> dataflow.query(even), dataflow.query(tens)
    (frozenset({14}), frozenset({1}))

What belongs to whom:

- A variable of `declare` is **shared**: replicas join each other's deltas of it.
- A variable of `declare_dynamic` is this device's alone. It is never sent, nor received; what a
  fold makes of it is, if a `fold_dynamic` combines it over the devices, as an entry that only its
  device writes.
- A derived variable is neither written nor sent: each replica makes its own, whatever it was
  declared as before.

Source: Christopher Meiklejohn, Peter Van Roy, "Lasp: A Language for Distributed, Coordination-Free
Programming", PPDP 2015; Christopher Meiklejohn, Seyed Hossein Haeri, Peter Van Roy, "Declarative,
Sliding Window Aggregations for Computations at the Edge", EdgeCom 2016.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from crdts import IncrementalSet, IVar, Lattice, Membership, OwnedMap, Replica
from lasp_edge.aggregates.local import Lifted
from lasp_edge.dataflow import operators
from lasp_edge.dataflow.assigned import DynamicFolded, Folded, sample_of
from lasp_edge.dataflow.definition import Definition
from lasp_edge.dataflow.derived import Derived
from lasp_edge.dataflow.network import Network
from lasp_edge.dataflow.nodes import Leaf, Mirror, Node, SetNode
from lasp_edge.dataflow.reads import Callback, Read
from lasp_edge.dataflow.relation import Change
from lasp_edge.dataflow.thresholds import Threshold, threshold_of
from lasp_edge.dataflow.watching import Follower, Watchers
from lasp_edge.folds.fold import as_fold
from lasp_edge.language.arguments import named
from lasp_edge.language.declarations import Variable
from lasp_edge.language.mutators import check_mutator

Named = Variable | str
"""A variable, or its name."""


class Dataflow:
    """The variables of one replica.

    Args:
        replica: who writes here.

    Attributes:
        definitions: how each derived variable is made.
    """

    def __init__(self, replica: Replica) -> None:
        self.definitions: dict[str, Definition] = {}
        self._replica = replica
        self._network = Network()
        self._variables: dict[str, Variable] = {}
        self._watchers = Watchers()
        self._unsent: dict[str, Lattice] = {}

    def declare(self, bottom: Lattice, name: str) -> Variable:
        """Declare a variable that replicas share; declaring it again returns it as it is.

        Args:
            bottom: the state it starts with.
            name: unique in the dataflow.

        Raises:
            ValueError: the name stands for something else already.
        """
        return self._declared(Variable(name, bottom, dynamic=False))

    def declare_dynamic(self, bottom: Lattice, name: str) -> Variable:
        """Declare a variable that is this device's alone.

        Arguments and errors as for `declare`.
        """
        return self._declared(Variable(name, bottom, dynamic=True))

    def update(self, variable: Named, mutator: Any, *arguments: Any) -> None:
        """Change a variable by a mutator of its type.

        Args:
            variable: a variable that is not derived.
            mutator: the mutator, its name, or the whole change as a tuple `("add", element)`.
            *arguments: the mutator's arguments after the replica.

        Raises:
            ValueError: the variable is derived, has no such mutator, or the mutator says so.
        """
        if isinstance(mutator, tuple):
            mutator, *rest = mutator
            arguments = (*rest, *arguments)
        leaf = self._leaf(variable, "update")
        name = mutator if isinstance(mutator, str) else getattr(mutator, "__name__", "")
        if name != "add_many":
            check_mutator(leaf.name, type(leaf.state), name, len(arguments))
        self._write(leaf, getattr(leaf.state, name)(self._replica, *arguments))

    def bind(self, variable: Named, state: Any) -> None:
        """Join `state` into a variable; an `IVar` is bound to a value, or to the same one again.

        Raises:
            ValueError: the variable is derived, `state` is none of its kind, or an `IVar` is bound
                to another value.
        """
        leaf = self._leaf(variable, "bind")
        if isinstance(leaf.state, IVar) and not isinstance(state, Lattice):
            state = leaf.state.bind(self._replica, state)
        self._write(leaf, self._fitting(leaf, state) - leaf.state)

    def receive(self, variable: Named, delta: Lattice) -> bool:
        """Join what another replica sent; return whether it was news.

        For a fold's target that a `fold_dynamic` reads, `delta` is an `OwnedMap` of partials.

        Raises:
            ValueError: the variable is not replicated, or `delta` is none of its kind.
        """
        node = self._node(variable)
        if isinstance(node, Folded):
            self._need_rest("receive", node.name)
            change = node.receive(delta)
        else:
            leaf = self._leaf(variable, "receive")
            if leaf.dynamic:
                raise ValueError(
                    f"receive: {leaf.name!r} is dynamic: each device has its own, and sends none"
                )
            change = leaf.join(self._fitting(leaf, delta))
        if change is not None:
            self._spread(node, change)
        return change is not None

    def take_deltas(self) -> dict[str, Lattice]:
        """Return what this replica has written since the last time, joined by variable.

        What others wrote is not among it. The target of a published `fold` gives an `OwnedMap`.
        """
        taken = dict(sorted(self._unsent.items()))
        self._unsent = {}
        return taken

    def state(self, variable: Named) -> Lattice:
        """Return a state that can be joined with that of the same variable on another replica.

        That of a derived set is a `Derived`; that of a published fold the devices' partials.

        Raises:
            ValueError: there is none: the result of a fold is assigned, never joined.
        """
        node = self._node(variable)
        if isinstance(node, Folded):
            return node.entries.copy()
        if node.state is not None:
            return node.state.copy()
        if not isinstance(node, SetNode):
            raise ValueError(f"state: {node.name!r} is assigned by a fold, never joined")
        leaves = [self._network.nodes[name] for name in self._network.graph.before(node.name)]
        shadows = {}
        for leaf in leaves:
            if isinstance(leaf, Leaf) and isinstance(leaf.state, IncrementalSet):
                shadows[leaf.name] = leaf.state.shadow()
        return Derived(shadows, node.relation.pairs())

    def query(self, variable: Named) -> Any:
        """Return the value of a variable as it is now: what it says may not hold later.

        A set's is a frozenset (a window's: its values, oldest first), a fold's is its partial.
        """
        return self._node(variable).value

    def read(self, variable: Named, threshold: Any = None) -> Read:
        """Return the value of a variable once it has come so far, and want it until then.

        Args:
            variable: any variable.
            threshold: a state of its kind (`threshold <= value`), or what `strict`, `at_least`,
                `at_most` or `cardinality` gives. None waits until something was written.

        Raises:
            ValueError: the variable could fall below the threshold again, so that what a reader
                learns would depend on when it looked.
        """
        node, wanted = self._asked(variable, threshold)
        read = Read(f"read {node.name!r}")
        self._want(node, wanted)
        self._watchers.wait(node, wanted, read.settle)
        return read

    def read_any(self, reads: Sequence[tuple[Named, Any]]) -> Read:
        """Return (name, value) of the first variable that has come as far as is asked of it.

        Args:
            reads: variables with their thresholds; of several that have, the first one counts.

        Raises:
            ValueError: as for `read`, or there is nothing to wait for.
        """
        asked = [self._asked(variable, threshold) for variable, threshold in reads]
        if not asked:
            raise ValueError("read_any: at least one variable is needed")
        read = Read("read any of " + ", ".join(repr(node.name) for node, _ in asked))
        for node, wanted in asked:
            self._want(node, wanted)
        for node, wanted in asked:
            self._watchers.wait(node, wanted, partial(_settle_named, read, node.name))
        return read

    def stream(self, variable: Named, follower: Follower) -> None:
        """Call `follower` with the `News` of what is here, and from then on of every change.

        The sum of the news is the variable: what was added and not removed since.
        """
        node = self._node(variable)
        self._watchers.follow(node, follower)
        self._want(node, None)

    def wait_needed(self, variable: Named) -> Read:
        """Return what is settled as soon as somebody wants the variable, with the threshold.

        Wanted is what is read, streamed or guarded, and all that it is made from; a query wants
        nothing. So what is expensive to find out need not be written before it is wanted.
        """
        node = self._node(variable)
        read = Read(f"wait until {node.name!r} is needed")
        self._watchers.sleep(node.name, read)
        return read

    def invariant(
        self, variable: Named, predicate: Callable[[Any], bool], enforce: Callback
    ) -> None:
        """Call `enforce` with the value whenever `predicate` stops to hold, and now if it does not.

        It is called once each time, after the change: so what is guarded was broken for a moment,
        here or elsewhere, and `enforce` makes up for it.
        """
        node = self._node(variable)
        self._watchers.guard(node, predicate, enforce)
        self._want(node, None)

    def bind_to(self, target: Named, source: Named) -> Variable:
        """Make `target` follow `source`: it is what that is, under a name of its own.

        Raises:
            ValueError: as for `map`, or the two are of different kinds.
        """
        node = self._node(source)
        made = Definition("bind_to", (node.name,))
        return self._derive(target, made, lambda name: Mirror(name, node))

    def map(self, source: Named, function: Callable[[Any], Any], target: Named) -> Variable:
        """Derive the images of a set's elements.

        Args:
            source: a set.
            function: gives an element's image; it must depend on nothing else. What it fails for
                is left aside, and counted in `left_aside`.
            target: a new name, or a variable that was declared, and neither written nor read.

        Raises:
            ValueError: `source` is no set or made from `target`, or `target` stands for something
                else; nothing is changed then.
        """
        node = self._set(source, "map")
        made = Definition("map", (node.name,), function)
        return self._derive(target, made, lambda name: operators.Mapped(name, node, function))

    def filter(self, source: Named, predicate: Callable[[Any], Any], target: Named) -> Variable:
        """Derive those elements of a set for which `predicate` holds.

        Arguments and errors as for `map`.
        """
        node = self._set(source, "filter")
        made = Definition("filter", (node.name,), predicate)
        return self._derive(target, made, lambda name: operators.Filtered(name, node, predicate))

    def union(self, left: Named, right: Named, target: Named) -> Variable:
        """Derive the elements that are in either set. Errors as for `map`."""
        return self._of_two("union", operators.United, left, right, target)

    def intersection(self, left: Named, right: Named, target: Named) -> Variable:
        """Derive the elements that are in both sets. Errors as for `map`."""
        return self._of_two("intersection", operators.Intersected, left, right, target)

    def product(self, left: Named, right: Named, target: Named) -> Variable:
        """Derive all pairs of an element of either set, left first. Errors as for `map`."""
        return self._of_two("product", operators.Multiplied, left, right, target)

    def fold(
        self,
        source: Named,
        fold: Any,
        target: Named,
        *,
        sample: Callable[[Any], Lifted] = sample_of,
    ) -> Variable:
        """Derive the partial of what a set holds here now; it is assigned, never joined.

        Args:
            source: a set. While a window has a hole, the partial stays what it was.
            fold: a fold such as `folds.mean()`, or its factory; one whose parameters are in units
                has to be bound to a resolution (`Fold.at`).
            target: as for `map`.
            sample: gives what the fold takes for an element: a quantised value, or (value,
                time_us). Samples of a window and integers need none.

        Raises:
            ValueError: as for `map`, or `fold` is none.
        """
        node, made = self._set(source, "fold"), as_fold(fold)
        definition = Definition("fold", (node.name,), sample, made)
        return self._derive(
            target, definition, lambda name: Folded(name, node, made, sample, self._replica)
        )

    def fold_dynamic(
        self, source: Named, target: Named, *, members: Named | None = None
    ) -> Variable:
        """Derive the combination of what a fold gave on each device.

        Args:
            source: the target of a `fold`; from now on its partials are sent and received.
            target: as for `map`.
            members: a variable that holds a `Membership`: devices that it retires do not count.

        Raises:
            ValueError: as for `map`, or `source` is no fold's target.
        """
        node = self._node(source)
        if not isinstance(node, Folded):
            raise ValueError(f"fold_dynamic: {node.name!r} must be the target of a fold")
        fleet = None if members is None else self._node(members)
        if fleet is not None and not isinstance(fleet.state, Membership):
            raise ValueError(f"fold_dynamic: {fleet.name!r} must hold a Membership")
        names = (node.name,) if fleet is None else (node.name, fleet.name)
        made = Definition("fold_dynamic", names, None, node.fold)
        return self._derive(target, made, lambda name: DynamicFolded(name, node, fleet))

    @property
    def left_aside(self) -> dict[str, int]:
        """How often a function of the user's failed, by variable; what never failed is absent."""
        return {name: node.failures for name, node in self._network.nodes.items() if node.failures}

    @property
    def touched(self) -> int:
        """How many pairs and partials were handled since the beginning: what all changes cost."""
        return sum(node.touched for node in self._network.nodes.values())

    def _declared(self, variable: Variable) -> Variable:
        name, bottom = named(variable.name, "variable"), variable.bottom
        if not isinstance(bottom, Lattice) or bottom != bottom.bottom():
            raise ValueError(f"declare {name!r}: a CRDT's bottom value is needed, not {bottom!r}")
        known = self._variables.get(name)
        if known is None:
            variable = replace(variable, bottom=bottom.bottom())
            self._network.add(Leaf(name, bottom, dynamic=variable.dynamic))
            known = self._variables[name] = variable
        if (known.dynamic, known.bottom) != (variable.dynamic, bottom):
            raise ValueError(f"variable {name!r} is declared twice, differently")
        return known

    def _node(self, variable: Any) -> Node:
        name = variable.name if isinstance(variable, Variable) else variable
        known = self._variables.get(name) if isinstance(name, str) else None
        if known is None or (isinstance(variable, Variable) and variable is not known):
            raise ValueError(f"{name!r} is no variable of this dataflow")
        return self._network.nodes[name]

    def _set(self, variable: Named, what: str) -> SetNode:
        node = self._node(variable)
        if not isinstance(node, SetNode) or not node.is_set:
            raise ValueError(f"{what}: {node.name!r} must be a set")
        return node

    def _leaf(self, variable: Named, what: str) -> Leaf:
        node = self._node(variable)
        if not isinstance(node, Leaf):
            raise ValueError(f"{what}: {node.name!r} is derived, by {self.definitions[node.name]}")
        self._need_rest(what, node.name)
        return node

    def _need_rest(self, what: str, name: str) -> None:
        if self._network.spreading:
            raise ValueError(f"{what} {name!r}: a function of an operator can change nothing")

    @staticmethod
    def _fitting(leaf: Leaf, state: Any) -> Lattice:
        if isinstance(state, Lattice) and leaf.state.is_like(state):
            return state
        raise ValueError(f"{leaf.name!r} needs a state like {leaf.bottom!r}, got {state!r}")

    def _asked(self, variable: Named, given: Any) -> tuple[Node, Threshold]:
        node, threshold = self._node(variable), threshold_of(given)
        refusal = threshold.refusal(node)
        if refusal:
            raise ValueError(f"read {node.name!r} for {threshold!r}: {refusal}")
        return node, threshold

    def _want(self, node: Node, threshold: Threshold | None) -> None:
        self._watchers.want([node.name, *self._network.graph.before(node.name)], threshold)

    def _of_two(
        self,
        operator: str,
        kind: type[operators.Operator],
        left: Named,
        right: Named,
        target: Named,
    ) -> Variable:
        sources = self._set(left, operator), self._set(right, operator)
        made = Definition(operator, tuple(source.name for source in sources))
        return self._derive(target, made, lambda name: kind(name, sources))

    def _derive(
        self, target: Named, definition: Definition, make: Callable[[str], Node]
    ) -> Variable:
        name = named(target.name if isinstance(target, Variable) else target, "variable")
        if name in self._variables or isinstance(target, Variable):
            self._node(target)
        self._need_rest(definition.operator, name)
        if name in self.definitions:
            if not self.definitions[name].means(definition):
                raise ValueError(f"{name!r} is derived already, by {self.definitions[name]}")
            return self._variables[name]
        if name in self._variables:
            self._network.graph.need_acyclic(name, definition.sources)
        node = make(name)
        self._variables[name] = self._variable_of(node)
        sources = node.sources
        changes = self._network.derive(node, definition.sources)
        self.definitions[name] = definition
        self._tell(changes, {source.name: source for source in sources})
        return self._variables[name]

    def _variable_of(self, node: Node) -> Variable:
        """Return the variable that a derived node stands behind: the one declared, if one was.

        Raises:
            ValueError: that was written or read already, or is of another kind.
        """
        name = node.name
        old = self._network.nodes.get(name)
        if old is None:
            bottom = None if node.state is None else node.state.bottom()
            return Variable(name, bottom, dynamic=node.dynamic)
        assert isinstance(old, Leaf)
        if old.written:
            raise ValueError(f"{name!r} was written, and cannot be derived any more")
        if old.is_set != node.is_set or type(node.state or old.state) is not type(old.state):
            raise ValueError(f"{name!r} was declared as {old.bottom!r}, and would be no such")
        waited = self._watchers.awaits([name, *self._network.graph.after(name)])
        if waited:
            raise ValueError(f"{name!r}: somebody reads {waited[0]!r}; derive it before that")
        return self._variables[name]

    def _write(self, leaf: Leaf, delta: Lattice) -> None:
        """Join an own delta, which others are to hear of where the variable is shared."""
        change = leaf.join(delta)
        if change is None:
            return
        if not leaf.dynamic:
            self._send(leaf.name, delta)
        self._spread(leaf, change)

    def _send(self, name: str, delta: Lattice) -> None:
        if name in self._unsent:
            self._unsent[name] |= delta
        else:
            self._unsent[name] = delta  # nobody else has it

    def _spread(self, start: Node, change: Change) -> None:
        changes = self._network.spread(start, change)
        self._tell(changes, {name: self._network.nodes[name] for name in changes})

    def _tell(self, changes: Mapping[str, Change], touched: Mapping[str, Node]) -> None:
        """Take out what is to be sent, and call those who watch."""
        for name, node in touched.items():
            if isinstance(node, Folded) and node.unsent.entries:
                self._send(name, node.unsent)
                node.unsent = OwnedMap()
        self._watchers.changed(self._network.nodes, changes)
        self._watchers.run()


def _settle_named(read: Read, name: str, value: Any) -> None:
    read.settle((name, value))
