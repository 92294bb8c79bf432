"""Dataflow: variables that are written, variables that follow from them, and those who watch.

A `Dataflow` holds the variables of one replica. Some are **written**: by this replica (`update`,
`bind`) and, where they are shared, by what others send (`receive`). The others are **derived** from
them by operators and change only with what they are made from, each once a change, in an order in
which none is seen half changed. A change costs what changed, not what there is.

It is pure: it reads no clock, draws no number, waits for nothing and sends nothing. `take_deltas`
gives the deltas for others, `read` gives a `Read` that is settled later.

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

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from lasp_edge.dataflow.deriving import DerivedVariables
from lasp_edge.dataflow.nodes import Node
from lasp_edge.dataflow.reads import Callback, Read
from lasp_edge.dataflow.thresholds import Threshold, threshold_of
from lasp_edge.dataflow.watching import Follower
from lasp_edge.dataflow.written import Named


class Dataflow(DerivedVariables):
    """The variables of one replica, and those who wait for them.

    >>> from crdts import ORSet, Replica
    >>> dataflow = Dataflow(Replica(1, 7, "kitchen"))
    >>> seen = dataflow.declare(ORSet(), "seen")
    >>> even = dataflow.filter(seen, lambda number: number % 2 == 0, "even")
    >>> dataflow.stream(even, lambda news: print("came", news.added, "left", news.removed))
    >>> dataflow.update(seen, ORSet.add_many, [12, 14, 21])
    came (12, 14) left ()
    >>> dataflow.update(seen, ORSet.remove, 12)
    came () left (12,)
    """

    def read(self, variable: Named, threshold: Any = None) -> Read:
        """Return the value of a variable as soon as it meets a threshold.

        >>> from crdts import GSet, Replica
        >>> from lasp_edge.dataflow import Dataflow, cardinality
        >>> dataflow = Dataflow(Replica(1, 7, "kitchen"))
        >>> seen = dataflow.declare(GSet(), "seen")
        >>> dataflow.read(seen, cardinality(2)).then(lambda rooms: print(len(rooms), "rooms"))
        >>> for room in ("attic", "hall"):
        ...     dataflow.update(seen, GSet.add, room)
        2 rooms

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
        """Return (name, value) of the first variable that meets its threshold.

        >>> from crdts import GSet, Replica
        >>> from lasp_edge.dataflow import Dataflow, cardinality
        >>> dataflow = Dataflow(Replica(1, 7, "kitchen"))
        >>> seen, heard = dataflow.declare(GSet(), "seen"), dataflow.declare(GSet(), "heard")
        >>> dataflow.read_any([(seen, cardinality(2)), (heard, cardinality(1))]).then(print)
        >>> dataflow.update(heard, GSet.add, "hall")
        ('heard', frozenset({'hall'}))

        Args:
            reads: variables with their thresholds; where several meet theirs, the first of these.

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
        """Call `follower` with the `News` of what the variable holds, and then of every change.

        The sum of the news is the variable: what was added and not removed since.
        """
        node = self._node(variable)
        self._watchers.follow(node, follower)
        self._want(node, None)

    def wait_needed(self, variable: Named) -> Read:
        """Return a read that is settled, with the threshold, as soon as the variable is wanted.

        A variable is wanted when it, or one that is made from it, is read, streamed or guarded; a
        query wants nothing. So what is expensive to find out can wait until it is wanted.

        >>> from crdts import GSet, Replica
        >>> from lasp_edge.dataflow import Dataflow
        >>> dataflow = Dataflow(Replica(1, 7, "kitchen"))
        >>> seen = dataflow.declare(GSet(), "seen")
        >>> dataflow.wait_needed(seen).then(lambda _: dataflow.update(seen, GSet.add, "attic"))
        >>> dataflow.read(seen).then(print)
        frozenset({'attic'})
        """
        node = self._node(variable)
        read = Read(f"wait until {node.name!r} is needed")
        self._watchers.sleep(node.name, read)
        return read

    def invariant(
        self, variable: Named, predicate: Callable[[Any], bool], enforce: Callback
    ) -> None:
        """Call `enforce` with the value whenever `predicate` stops to hold, and now if it does not.

        It is called once each time, after the change: the variable breaks the predicate for a
        moment, here or elsewhere, and `enforce` repairs it.

        >>> from crdts import Counter, Replica
        >>> from lasp_edge.dataflow import Dataflow
        >>> dataflow = Dataflow(Replica(1, 7, "kitchen"))
        >>> stock = dataflow.declare(Counter(), "stock")
        >>> refill = lambda left: dataflow.update(stock, Counter.increment, 10 - left)
        >>> dataflow.invariant(stock, lambda left: left >= 3, refill)
        >>> dataflow.query(stock)
        10
        """
        node = self._node(variable)
        self._watchers.guard(node, predicate, enforce)
        self._want(node, None)

    def _asked(self, variable: Named, given: Any) -> tuple[Node, Threshold]:
        node, threshold = self._node(variable), threshold_of(given)
        refusal = threshold.refusal(node)
        if refusal:
            raise ValueError(f"read {node.name!r} for {threshold!r}: {refusal}")
        return node, threshold

    def _want(self, node: Node, threshold: Threshold | None) -> None:
        self._watchers.want([node.name, *self._network.graph.before(node.name)], threshold)


def _settle_named(read: Read, name: str, value: Any) -> None:
    read.settle((name, value))
