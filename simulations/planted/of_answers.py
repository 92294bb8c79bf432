"""Bugs of what sinks answer."""

from collections.abc import Iterator

from lasp_edge.protocol.acks import Answer
from simulations.planted.bug import planted, replaced


@planted
def what_is_refused_is_not_answered() -> Iterator[None]:
    """A sink cannot take what a device sends, and says nothing: it comes again and again."""

    def add(self: Answer, other: Answer) -> None:
        for (incarnation, nonce), seqs in other.taken.items():
            self.take(incarnation, nonce, seqs)

    with replaced(Answer, "add", add):
        yield
