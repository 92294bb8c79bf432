"""What must hold of events in order that a sink has just marked as whole.

- a device that counts, that the sink does not wait for, and that has not answered is lacked there:
  the rows name it until it has
"""

from collections.abc import Iterator

from lasp_edge.evaluation.parted import PartedScans
from lasp_edge.ordered.answers import PartAnswer
from lasp_edge.ordered.places import Place


class MarkedWatch:
    """Looks at one sink after each turn."""

    def __init__(self) -> None:
        self._parted: PartedScans | None = None
        self._marks: dict[tuple[str, Place], bytes] = {}

    def unnamed(self, parted: PartedScans) -> Iterator[str]:
        """Yield the devices without whose answer an event is marked, and that it does not lack.

        Args:
            parted: of the sink's run; another run's marks are old.
        """
        before, self._marks = self._marks, {}
        is_new, self._parted = parted is not self._parted, parted
        for name, gathering in parted.gathered.items():
            for place, answers in gathering.open.items():
                record = gathering.records[place]
                mark = self._marks[name, place] = record.mark
                if is_new or not mark or mark == before.get((name, place)):
                    continue
                if not isinstance(answers, PartAnswer):
                    silent = gathering.waited.absent.difference(answers)
                    if not silent <= {*record.lacks}:
                        yield f"{name} is whole at {place} without {silent}, and {record}"
