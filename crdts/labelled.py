"""Labelled: causal states that find dots by what they are about, an element or a key.

A causal state knows what each dot wrote. Sets and maps are asked the other way round: which dots
say "milk"? So they keep the inverse, in step with every join.

Cost: nothing on the wire; in memory an entry a label, one integer where one dot has it.

>>> from crdts import ORSet, Replica
>>> me, you = Replica(1, 7, "kitchen"), Replica(1, 9, "cellar")
>>> state = ORSet().add(me, "milk") | ORSet().add(you, "milk")
>>> len(state.dots_of("milk")), state.dots_of("bread")
(2, ())

Source: Annette Bieniusa et al., "An Optimized Conflict-free Replicated Set", INRIA RR-8083, 2012.
"""

from collections.abc import Iterator
from typing import Any, Self

from crdts.causal import Causal, Payloads
from crdts.causal_context import CausalContext
from crdts.flags import EWFlag
from crdts.incremental import IncrementalSet, MovedToken
from crdts.mutator import mutator
from crdts.replica import Replica


class Labelled(Causal, IncrementalSet):
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

    def index_labels(self, added: Payloads) -> None:
        """Take these dots into `labels`."""
        labels, label = self.labels, self.label
        for dot, payload in added.items():
            at = label(payload)
            known = labels.setdefault(at, dot)
            if known is not dot:
                labels[at] = (*known, dot) if isinstance(known, tuple) else (known, dot)

    def join_dots(self, other: Self) -> tuple[Payloads, Payloads]:
        added, removed = super().join_dots(other)
        if removed:
            self._unindex(removed)
        if added:
            self.index_labels(added)
        return added, removed

    def _unindex(self, removed: Payloads) -> None:
        for dot, payload in removed.items():
            at = self.label(payload)
            rest = tuple(known for known in self.dots_of(at) if known != dot)
            if rest:
                self.labels[at] = rest[0] if len(rest) == 1 else rest
            else:
                del self.labels[at]

    def join_tokens(self, delta: Self) -> Iterator[MovedToken]:
        added, removed = self.join_dots(delta)
        for dot, payload in removed.items():
            yield dot, self.label(payload), -1
        for dot, payload in added.items():
            yield dot, self.label(payload), 1

    def tokens(self) -> Iterator[tuple[Any, Any]]:
        return ((dot, self.label(payload)) for dot, payload in self.dots.items())

    def shadow(self) -> EWFlag:
        return EWFlag().part(dict.fromkeys(self.dots), self.context.copy())

    @mutator
    def remove(self, _replica: Replica, label: Any) -> Self:
        """Return the delta that removes every observed dot of `label`; it may be absent."""
        return self.part({}, CausalContext.of(self.dots_of(label)))

    @mutator
    def clear(self, _replica: Replica) -> Self:
        """Return the delta that removes every observed dot."""
        return self.part({}, CausalContext.of(self.dots.keys()))

    def __contains__(self, label: object) -> bool:
        return label in self.labels

    def __iter__(self) -> Iterator[Any]:
        return iter(self.labels)

    def __len__(self) -> int:
        return len(self.labels)
