"""Reopening: a device that counts later is asked for the answers that passed events in order lack.

Of events that are not open nothing is published, so it may not know of them. It may follow this
evaluator while another one waits for its answers. And where it knows of an event behind such a one,
what it has read before that is missing in both.
"""

from collections.abc import Callable, Mapping, Set

from lasp_edge.ordered.answers import PartAnswer
from lasp_edge.ordered.cells import cell_of
from lasp_edge.ordered.gathering import Gathering
from lasp_edge.ordered.places import Place


def reopen(
    gathering: Gathering,
    devices: Set[str],
    floor_us: int,
    answers_in: Callable[[set[int]], Mapping[Place, Mapping[str, PartAnswer]]],
) -> None:
    """Open the events in order again that lack some device which did not count before.

    Args:
        gathering: the events in order.
        devices: that count now.
        floor_us: no answer at an event before it is taken any more, so that one stays as it is.
        answers_in: gives the stored answers in some cells.
    """
    came = devices - gathering.waited.promises.keys()
    if not (came and gathering.lacks_any):
        return
    records = gathering.records
    taken = [(at, each) for at, each in records.items() if at[0] >= floor_us]
    lacking = [at for at, each in taken if each.answered and came & {*each.lacks}]
    answers = answers_in({cell_of(place[0]) for place in lacking})
    for place in lacking:
        record = records[place]
        # An answer by another basis is about to be replaced: rows stay until then.
        given = answers.get(place, {}).items()
        gathering.open[place] = {of: each for of, each in given if each.counts(record.mark)}
        records[place] = record._replace(answered=False)
        gathering.changed.add(place)
