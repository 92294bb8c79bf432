"""Variables that follow from others: the operators of a `Dataflow`, its middle layer.

An operator is declared once for a target. Declared again it changes nothing, if it means the same;
a definition that does not fit is refused, and then nothing is changed.
"""

from collections.abc import Callable
from typing import Any

from crdts import DerivedSet, IncrementalSet, Lattice, Membership
from lasp_edge.aggregates.local import Lifted
from lasp_edge.dataflow import operators
from lasp_edge.dataflow.assigned import DynamicFolded, Folded, sample_of
from lasp_edge.dataflow.definition import Definition
from lasp_edge.dataflow.nodes import Leaf, Mirror, Node, SetNode
from lasp_edge.dataflow.written import Named, WrittenVariables
from lasp_edge.folds.fold import as_fold
from lasp_edge.variables import Variable, named


class DerivedVariables(WrittenVariables):
    """The variables of one replica, and the operators that derive some from others."""

    def state(self, variable: Named) -> Lattice:
        """Return a state that can be joined with that of the same variable on another replica.

        That of a derived set is a `DerivedSet`; that of a published fold the devices' partials.

        >>> from crdts import GSet, Replica
        >>> from lasp_edge.dataflow import Dataflow
        >>> dataflow = Dataflow(Replica(1, 7, "kitchen"))
        >>> dataflow.update(dataflow.declare(GSet(), "seen"), GSet.add, "attic")
        >>> dataflow.state("seen") | GSet({"hall"}) == GSet({"attic", "hall"})
        True

        Raises:
            ValueError: it is the result of a fold, which is assigned and never joined.
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
        return DerivedSet(shadows, node.relation.pairs())

    def bind_to(self, target: Named, source: Named) -> Variable:
        """Make `target` follow `source`: it is what that is, under a name of its own.

        >>> from crdts import GSet, Replica
        >>> from lasp_edge.dataflow import Dataflow
        >>> dataflow = Dataflow(Replica(1, 7, "kitchen"))
        >>> seen = dataflow.declare(GSet(), "seen")
        >>> alias = dataflow.bind_to("rooms", seen)
        >>> dataflow.update(seen, GSet.add, "attic")
        >>> dataflow.query("rooms")
        frozenset({'attic'})

        Raises:
            ValueError: as for `map`, or the two are of different kinds.
        """
        node = self._node(source)
        made = Definition("bind_to", (node.name,))
        return self._derive(target, made, lambda name: Mirror(name, node))

    def map(self, source: Named, function: Callable[[Any], Any], target: Named) -> Variable:
        """Derive the images of a set's elements.

        >>> from crdts import ORSet, Replica
        >>> from lasp_edge.dataflow import Dataflow
        >>> dataflow = Dataflow(Replica(1, 7, "kitchen"))
        >>> seen = dataflow.declare(ORSet(), "seen")
        >>> floors = dataflow.map(seen, lambda room: room[0], "floors")
        >>> dataflow.update(seen, ORSet.add_many, ["2a", "2b"])
        >>> dataflow.query(floors)
        frozenset({'2'})

        Args:
            source: a set.
            function: gives an element's image; it must depend on nothing else. What it fails for
                is left aside, and counted in `left_aside`.
            target: a new name, or a variable that was declared, and neither written nor read.

        Raises:
            ValueError: `source` is not a set, or is made from `target`, or `target` stands for
                something else; nothing is changed then.
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
        """Derive the elements that are in either set. Errors as for `map`.

        >>> from crdts import ORSet, Replica
        >>> from lasp_edge.dataflow import Dataflow
        >>> dataflow = Dataflow(Replica(1, 7, "kitchen"))
        >>> for name, rooms in (("warm", ["attic", "hall"]), ("open", ["hall"])):
        ...     dataflow.update(dataflow.declare(ORSet(), name), ORSet.add_many, rooms)
        >>> sorted(dataflow.query(dataflow.union("warm", "open", "both")))
        ['attic', 'hall']
        """
        return self._of_two("union", operators.United, left, right, target)

    def intersection(self, left: Named, right: Named, target: Named) -> Variable:
        """Derive the elements that are in both sets. Errors as for `map`.

        >>> from crdts import ORSet, Replica
        >>> from lasp_edge.dataflow import Dataflow
        >>> dataflow = Dataflow(Replica(1, 7, "kitchen"))
        >>> for name, rooms in (("warm", ["attic", "hall"]), ("open", ["hall"])):
        ...     dataflow.update(dataflow.declare(ORSet(), name), ORSet.add_many, rooms)
        >>> sorted(dataflow.query(dataflow.intersection("warm", "open", "both")))
        ['hall']
        """
        return self._of_two("intersection", operators.Intersected, left, right, target)

    def product(self, left: Named, right: Named, target: Named) -> Variable:
        """Derive all pairs of an element of either set, left first. Errors as for `map`.

        >>> from crdts import ORSet, Replica
        >>> from lasp_edge.dataflow import Dataflow
        >>> dataflow = Dataflow(Replica(1, 7, "kitchen"))
        >>> for name, rooms in (("warm", ["attic", "hall"]), ("open", ["hall"])):
        ...     dataflow.update(dataflow.declare(ORSet(), name), ORSet.add_many, rooms)
        >>> sorted(dataflow.query(dataflow.product("warm", "open", "both")))
        [('attic', 'hall'), ('hall', 'hall')]
        """
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

        >>> from crdts import BoundedLWWSet, Replica
        >>> from lasp_edge import folds
        >>> from lasp_edge.dataflow import Dataflow
        >>> dataflow = Dataflow(Replica(1, 7, "kitchen"))
        >>> last = dataflow.declare_dynamic(BoundedLWWSet(bound=2), "last")
        >>> total = dataflow.fold(last, folds.mean(), "total")
        >>> for time_us, value in ((10, 21), (20, 22), (30, 23)):
        ...     dataflow.update(last, BoundedLWWSet.add, value, time_us)
        >>> dataflow.query(total)  # how many, and their sum
        (2, 45)

        Args:
            source: a set. While a window has a hole, the partial stays what it was.
            fold: a fold such as `folds.mean()`, or its factory; one whose parameters are in units
                has to be bound to a resolution (`Fold.at`).
            target: as for `map`.
            sample: gives what the fold takes for an element: a quantised value, or (value,
                time_us). Samples of a window and integers need none.

        Raises:
            ValueError: as for `map`, or `fold` is not a fold.
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

        >>> from crdts import BoundedLWWSet, Replica
        >>> from lasp_edge import folds
        >>> from lasp_edge.dataflow import Dataflow
        >>> kitchen, cellar = (Dataflow(Replica(1, 7, name)) for name in ("kitchen", "cellar"))
        >>> for each, value in ((kitchen, 21), (cellar, 12)):
        ...     last = each.declare_dynamic(BoundedLWWSet(bound=9), "last")
        ...     fleet = each.fold_dynamic(each.fold(last, folds.mean(), "here"), "fleet")
        ...     each.update(last, BoundedLWWSet.add, value, 10)
        >>> kitchen.receive("here", cellar.take_deltas()["here"]), kitchen.query("fleet")
        (True, (2, 33))

        Args:
            source: the target of a `fold`; from now on its partials are sent and received.
            target: as for `map`.
            members: a variable that holds a `Membership`: devices that it retires do not count.

        Raises:
            ValueError: as for `map`, or `source` is not the target of a fold.
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

    def _set(self, variable: Named, what: str) -> SetNode:
        node = self._node(variable)
        if not isinstance(node, SetNode) or not node.is_set:
            raise ValueError(f"{what}: {node.name!r} must be a set")
        return node

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
            raise ValueError(
                f"{name!r} was declared as {old.bottom!r}; what it follows from is of another kind"
            )
        waited = self._watchers.awaits([name, *self._network.graph.after(name)])
        if waited:
            raise ValueError(
                f"{name!r}: a read waits for {waited[0]!r}; derive it before that read"
            )
        return self._variables[name]
