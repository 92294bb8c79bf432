"""ORSet: a set to which anybody adds and from which anybody removes; adding wins.

Every add writes a new dot. Removing takes away the dots of the element that the remover has
*observed*, so an add that it had not heard of survives. Adding again replaces the observed dots by
one: an element costs one dot however often it was added, unless replicas add it concurrently.

Cost: an element and 0 to 4 B on the wire (in order of dots, which follow one another); some 150 B
in memory. A set that was emptied is its context: some 12 B a replica, the only thing that grows. No
element that was removed leaves anything behind.

>>> from crdts import ORSet, Replica
>>> kitchen, cellar = Replica(1, 7, "kitchen"), Replica(1, 9, "cellar")
>>> here, there = ORSet(), ORSet()
>>> here |= here.add(kitchen, "milk")
>>> there |= here
>>> here |= here.remove(kitchen, "milk")
>>> there |= there.add(cellar, "milk")
>>> (here | there).value
frozenset({'milk'})

Source: Annette Bieniusa, Marek Zawirski, Nuno Preguiça, Marc Shapiro, Carlos Baquero, Valter
Balegas, Sérgio Duarte, "An Optimized Conflict-free Replicated Set", INRIA RR-8083, 2012; Paulo
Sérgio Almeida, Ali Shoker, Carlos Baquero, "Delta State Replicated Data Types", JPDC 111, 2018,
section 7.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Self

from crdts.causal import Causal, Payloads
from crdts.causal_context import CausalContext
from crdts.plain import need_element
from crdts.replica import Replica


class Labelled(Causal):
    """A causal state that finds the live dots of a label: of a set's element, of a map's key.

    `labels` is label -> its only dot, or a tuple of them where replicas wrote concurrently.
    """

    __slots__ = ("labels",)

    labels: dict[Any, int | tuple[int, ...]]

    def __init__(self) -> None:
        super().__init__()
        self.labels = {}

    @staticmethod
    def label(payload: Any) -> Any:
        """Return what a dot with this payload is found by."""
        return payload

    def dots_of(self, label: Any) -> tuple[int, ...]:
        """Return the live dots of `label`."""
        known = self.labels.get(label, ())
        return (known,) if type(known) is int else known  # type: ignore[return-value]

    def part(self, dots: Payloads, context: CausalContext) -> Self:
        made = super().part(dots, context)
        made.labels = {}
        made.index_labels(dots)
        return made

    def index_labels(self, came: Payloads) -> None:
        """Take these dots into `labels`."""
        labels, label = self.labels, self.label
        for dot, payload in came.items():
            at = label(payload)
            known = labels.setdefault(at, dot)
            if known is not dot:
                labels[at] = (*known, dot) if isinstance(known, tuple) else (known, dot)

    def join_dots(self, other: Self) -> tuple[Payloads, Payloads]:
        came, went = super().join_dots(other)
        if went:
            self._unindex(went)
        if came:
            self.index_labels(came)
        return came, went

    def _unindex(self, went: Payloads) -> None:
        for dot, payload in went.items():
            at = self.label(payload)
            rest = tuple(known for known in self.dots_of(at) if known != dot)
            if rest:
                self.labels[at] = rest[0] if len(rest) == 1 else rest
            else:
                del self.labels[at]

    def join_changes(self, delta: Self) -> tuple[list[Any], list[Any]]:
        """Join `delta` in place; return the labels that came and those that went."""
        came, went = self.join_dots(delta)
        left = dict.fromkeys(map(self.label, went.values()))
        fresh = dict.fromkeys(map(self.label, came.values()))
        added = [
            label
            for label in fresh
            if label not in left and all(dot in came for dot in self.dots_of(label))
        ]
        return added, [label for label in left if label not in self.labels]

    def remove(self, _replica: Replica, label: Any) -> Self:
        """Return the delta that removes every observed dot of `label`; it may be absent."""
        return self.removed(self.dots_of(label))

    def clear(self, _replica: Replica) -> Self:
        """Return the delta that removes every observed dot."""
        return self.removed(self.dots.keys())

    def __contains__(self, label: object) -> bool:
        return label in self.labels

    def __iter__(self) -> Iterator[Any]:
        return iter(self.labels)

    def __len__(self) -> int:
        return len(self.labels)


class ORSet(Labelled):
    """A set of elements; a dot's payload is the element it added."""

    __slots__ = ()

    @property
    def value(self) -> frozenset[Any]:
        """The elements."""
        return frozenset(self.labels)

    def need_payload(self, payload: Any) -> Any:
        return need_element(payload)

    def add(self, replica: Replica, element: Any) -> Self:
        """Return the delta in which `replica` adds `element`.

        Raises:
            ValueError: `element` is none (see `crdts.plain`).
        """
        replaced = self.dots_of(need_element(element))
        return self.written(self.context.next_dot(replica), element, replaced)

    def add_many(self, replica: Replica, elements: Iterable[Any]) -> Self:
        """Return the delta in which `replica` adds all `elements`, each once.

        Raises:
            ValueError: one of them is no element.
        """
        first = self.context.next_dot(replica)
        dots = dict(enumerate(dict.fromkeys(map(need_element, elements)), start=first))
        replaced = [dot for element in dots.values() for dot in self.dots_of(element)]
        return self.part(dots, CausalContext.of(dots.keys() | replaced))
