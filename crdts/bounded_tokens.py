"""How readers of a bounded set are told of its samples: numbered, by `crdts.incremental`.

A token is (replica, seq). Its element is the sample with its number, so that two equal readings are
two elements.

Cost: see `crdts.bounded_lww_set`.
"""

from collections.abc import Iterator
from typing import Any, Self

from crdts.bounded_state import BoundedState
from crdts.incremental import IncrementalSet, MovedToken, Shadow, need_write
from crdts.replica import Replica
from crdts.samples import Sample


class BoundedTokens(BoundedState, Shadow, IncrementalSet):
    """A bounded set as its readers see it; it is its own shadow."""

    __slots__ = ()

    def join_tokens(self, delta: Self) -> Iterator[MovedToken]:
        before = dict(self._near(delta))
        self.join_changes(delta)
        after = dict(self._near(delta))
        after.update((token, self._at(token)) for token in before if token not in after)
        for token, sample in before.items():
            if sample is not None and sample != after[token]:
                yield token, sample, -1
        for token, sample in after.items():
            if sample is not None and sample != before.get(token):
                yield token, sample, 1

    def _near(self, delta: Self) -> Iterator[tuple[Any, Sample | None]]:
        """Yield all tokens that `delta` can move, with what they stand for now."""
        if self.replica != delta.replica:
            yield from self.tokens()
            return
        aged = range(self.lo + 1, delta.lo + 1)
        kept = aged if len(aged) <= len(self.items) else sorted(self.items)
        for seq in dict.fromkeys((*kept, *sorted(delta.items))):
            yield (self.replica, seq), self._at((self.replica, seq))

    def _at(self, token: tuple[Replica, int]) -> Sample | None:
        replica, seq = token
        held = self.items.get(seq) if replica == self.replica else None
        return None if held is None else Sample(seq, held[0], held[1])

    def tokens(self) -> Iterator[tuple[Any, Any]]:
        return (((self.replica, seq), self._at((self.replica, seq))) for seq in self.items)

    def shadow(self) -> Self:
        return self.copy()

    def live(self) -> Iterator[Any]:
        return ((self.replica, seq) for seq in self.items)

    def is_live(self, token: Any) -> bool:
        return self._at(token) is not None

    @staticmethod
    def token_to_plain(token: Any) -> Any:
        replica, seq = token
        return *replica, seq

    token_from_plain = staticmethod(need_write)
