"""A relation: which elements a set has, and from which writes each of them follows.

A **token** is one write of a leaf variable, and a **term** is a set of tokens that together justify
an element: the one dot of an element that was added, the two dots of a pair that a product made. An
element is in as long as one of its terms is, and a term is as long as all of its tokens are live.
So an element stays while one of its reasons does, and knows the writes that it follows from.

Operators exchange **pairs** (element, term) with a weight: +1 added, -1 removed, and in between any
integer, since one pair may be derived in several ways (by both sides of a union, by a map of equal
images). A relation counts the ways, and tells its readers only what appears and what disappears.

    >>> relation = Relation()
    >>> cup = ("cup", frozenset({("kitchen", 1)}))
    >>> relation.apply({cup: 2}).added, relation.apply({cup: -1}), relation.apply({cup: -1}).removed
    (['cup'], None, ['cup'])

Source: Todd Green, Grigoris Karvounarakis, Val Tannen, "Provenance Semirings", PODS 2007 (terms);
Frank McSherry et al., "Differential Dataflow", CIDR 2013 (weighted changes).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from crdts import Entry
from crdts.derived_set import ElementTerm, Term

Weights = dict[ElementTerm, int]


@dataclass(slots=True)
class Change:
    """What one step changed in a variable.

    Attributes:
        pairs: the added (1) and removed (-1) pairs; empty for a variable that is not a set.
        added: the elements that are new.
        removed: the elements that are gone.
        entries: for the target of a fold, the new entries by device.
    """

    pairs: Weights = field(default_factory=dict)
    added: list[Any] = field(default_factory=list)
    removed: list[Any] = field(default_factory=list)
    entries: dict[str, Entry] = field(default_factory=dict)


class Relation:
    """Element -> its terms, each with the number of its derivations; absent means none.

    Attributes:
        touched: how many pairs were handled since the beginning: what all changes cost.
    """

    __slots__ = ("_terms", "touched")

    def __init__(self) -> None:
        self._terms: dict[Any, dict[Term, int]] = {}
        self.touched = 0

    def apply(self, weights: Weights) -> Change | None:
        """Add these weights; return what that changed, None where it is nothing."""
        change = Change()
        present: dict[Any, bool] = {}
        self.touched += len(weights)
        for (element, term), weight in weights.items():
            terms = self._terms.setdefault(element, {})
            present.setdefault(element, bool(terms))
            before = terms.get(term, 0)
            after = before + weight
            assert after >= 0, "an operator took back what it never gave"
            if after:
                terms[term] = after
            elif before:
                del terms[term]
            if bool(before) != bool(after):
                change.pairs[element, term] = 1 if after else -1
        for element, was_in in present.items():
            if not self._terms[element]:
                del self._terms[element]
            if was_in != (element in self._terms):
                (change.removed if was_in else change.added).append(element)
        return change if change.pairs else None

    def whole(self) -> Change:
        """Return the change from nothing to this relation."""
        return Change(dict.fromkeys(self.pairs(), 1), list(self._terms))

    def pairs(self) -> Iterator[ElementTerm]:
        """Yield every pair once."""
        return ((element, term) for element, terms in self._terms.items() for term in terms)

    def terms(self, element: Any) -> Iterator[Term]:
        """Yield the terms of an element."""
        return iter(self._terms.get(element, ()))

    def __contains__(self, element: object) -> bool:
        return element in self._terms

    def __iter__(self) -> Iterator[Any]:
        return iter(self._terms)

    def __len__(self) -> int:
        return len(self._terms)
