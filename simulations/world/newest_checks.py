"""What must hold of the newest rows of a result over the fleet, which people and alerts are given.

- of each key that is remembered, they are the newest that its store has, as they are there
"""

from collections.abc import Iterable, Iterator, Mapping

from lasp_edge.evaluation.rows import Newest
from lasp_edge.ordered.places import Place
from lasp_edge.ordered.results import ResultRow
from lasp_edge.protocol.status import TENTATIVE


def wrong_newest(
    newest: Iterable[tuple[str, str, Newest]], stored: Mapping[Place, ResultRow]
) -> Iterator[str]:
    """Yield what is remembered of a key, and is not what stands.

    Args:
        newest: result, key and newest rows; a row that a run did not see is missing.
        stored: all rows of the one result.
    """
    last: dict[tuple[str, bool], Place] = {}
    for place in sorted(stored):
        if (event := stored[place].event) is not None:
            last[event.key, stored[place].status == TENTATIVE] = place
    for name, key, known in newest:
        for placed, is_tentative in ((known.final, False), (known.tentative, True)):
            at = last.get((key, is_tentative))
            if placed is not None and (at is None or placed != (at, stored[at])):
                right = None if at is None else (at, stored[at])
                yield f"{name}: the newest row of {key!r} is {placed}, and it is {right}"
