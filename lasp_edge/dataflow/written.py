"""Variables that are written: by this replica, and by what it receives of others.

It is the lowest of the three layers of a `Dataflow`: it holds the network of nodes, joins what is
written into a leaf, and lets the change run through all that is made from it.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from crdts import IVar, Lattice, OwnedMap, Replica
from lasp_edge.dataflow.assigned import Folded
from lasp_edge.dataflow.definition import Definition
from lasp_edge.dataflow.network import Network
from lasp_edge.dataflow.nodes import Leaf, Node
from lasp_edge.dataflow.relation import Change
from lasp_edge.dataflow.watching import Watchers
from lasp_edge.variables import Variable, check_mutator, named

Named = Variable | str
"""A variable, or its name."""


class WrittenVariables:
    """The variables of one replica that are not derived.

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

        Raises:
            ValueError: the name stands for something else already.
        """
        return self._declared(Variable(name, bottom, dynamic=False))

    def declare_dynamic(self, bottom: Lattice, name: str) -> Variable:
        """Declare a variable that is this device's alone.

        Arguments and errors as for `declare`.

        >>> from crdts import BoundedLWWSet, Replica
        >>> from lasp_edge.dataflow import Dataflow
        >>> dataflow = Dataflow(Replica(1, 7, "kitchen"))
        >>> last = dataflow.declare_dynamic(BoundedLWWSet(bound=2), "last")
        >>> for time_us, value in ((10, 21), (20, 22), (30, 23)):
        ...     dataflow.update(last, BoundedLWWSet.add, value, time_us)
        >>> dataflow.query(last), dataflow.take_deltas()  # nothing of it is sent
        ((22, 23), {})
        """
        return self._declared(Variable(name, bottom, dynamic=True))

    def update(self, variable: Named, mutator: Any, *arguments: Any) -> None:
        """Change a variable by a mutator of its type.

        `mutator` is one of its type, its name, or the whole change as a tuple `("add", element)`;
        `arguments` follow the replica.

        Raises:
            ValueError: the variable is derived, has no such mutator, or the mutator raises it.
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

        >>> from crdts import IVar, Replica
        >>> from lasp_edge.dataflow import Dataflow
        >>> dataflow = Dataflow(Replica(1, 7, "kitchen"))
        >>> owner = dataflow.declare(IVar(), "owner")
        >>> dataflow.bind(owner, "ann")
        >>> dataflow.query(owner)
        'ann'

        Raises:
            ValueError: the variable is derived, `state` is not one of its kind, or an `IVar` is
                bound to another value.
        """
        leaf = self._leaf(variable, "bind")
        if isinstance(leaf.state, IVar) and not isinstance(state, Lattice):
            state = leaf.state.bind(self._replica, state)
        self._write(leaf, self._fitting(leaf, state) - leaf.state)

    def receive(self, variable: Named, delta: Lattice) -> bool:
        """Join what another replica sent; return whether it was news.

        For a fold's target that a `fold_dynamic` reads, `delta` is an `OwnedMap` of partials.

        >>> from crdts import GSet, Replica
        >>> from lasp_edge.dataflow import Dataflow
        >>> kitchen, cellar = (Dataflow(Replica(1, 7, name)) for name in ("kitchen", "cellar"))
        >>> for each in (kitchen, cellar):
        ...     seen = each.declare(GSet(), "seen")
        >>> kitchen.update("seen", GSet.add, "attic")
        >>> [cellar.receive(name, delta) for name, delta in kitchen.take_deltas().items()]
        [True]
        >>> cellar.query("seen")
        frozenset({'attic'})

        Raises:
            ValueError: the variable is not replicated, or `delta` is not one of its kind.
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

        >>> from crdts import GSet, Replica
        >>> from lasp_edge.dataflow import Dataflow
        >>> dataflow = Dataflow(Replica(1, 7, "kitchen"))
        >>> dataflow.update(dataflow.declare(GSet(), "seen"), GSet.add, "attic")
        >>> dataflow.take_deltas(), dataflow.take_deltas()
        ({'seen': GSet(elements={'attic'})}, {})
        """
        taken = dict(sorted(self._unsent.items()))
        self._unsent = {}
        return taken

    def query(self, variable: Named) -> Any:
        """Return the value of a variable as it is now; it may be another one later.

        A set's is a frozenset (a window's: its values, oldest first), a fold's is its partial.

        >>> from crdts import Counter, Replica
        >>> from lasp_edge.dataflow import Dataflow
        >>> dataflow = Dataflow(Replica(1, 7, "kitchen"))
        >>> made = dataflow.declare(Counter(), "made")
        >>> dataflow.update(made, Counter.increment, 3)
        >>> dataflow.query(made)
        3
        """
        return self._node(variable).value

    @property
    def left_aside(self) -> dict[str, int]:
        """How often a function of the user's failed, by variable; absent means never."""
        return {name: node.failures for name, node in self._network.nodes.items() if node.failures}

    @property
    def touched(self) -> int:
        """How many pairs and partials were handled since the beginning: the cost of all changes."""
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
            raise ValueError(f"this dataflow has no variable {name!r}")
        return self._network.nodes[name]

    def _leaf(self, variable: Named, what: str) -> Leaf:
        node = self._node(variable)
        if not isinstance(node, Leaf):
            raise ValueError(f"{what}: {node.name!r} is derived, by {self.definitions[node.name]}")
        self._need_rest(what, node.name)
        return node

    def _need_rest(self, what: str, name: str) -> None:
        if self._network.spreading:
            raise ValueError(
                f"{what} {name!r}: a function that an operator calls must not change variables"
            )

    @staticmethod
    def _fitting(leaf: Leaf, state: Any) -> Lattice:
        if isinstance(state, Lattice) and leaf.state.is_like(state):
            return state
        raise ValueError(f"{leaf.name!r} needs a state like {leaf.bottom!r}, got {state!r}")

    def _write(self, leaf: Leaf, delta: Lattice) -> None:
        """Join an own delta, which is to be sent where the variable is shared."""
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
        """Take out the deltas to send, and call the watchers."""
        for name, node in touched.items():
            if isinstance(node, Folded) and node.unsent.entries:
                self._send(name, node.unsent)
                node.unsent = OwnedMap()
        self._watchers.changed(self._network.nodes, changes)
        self._watchers.run()
