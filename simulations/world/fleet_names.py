"""What must hold of the names in a sink's rows of the order over the fleet.

- a row that is final, when it is written, names each device that counts and has never promised past
  its time
- whom a final row named, the next one names, too, unless that has promised past its time
- where X is 0, a tentative row names nobody
- in the end a final row names each device of which readings may be missing there, as a store of it
  was lost, unless it was final before anybody knew of the device; and none that has promised past
  its time and lacks nothing there
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from crdts.frontier import BOTTOM_US
from lasp_edge.ordered.places import Place
from lasp_edge.ordered.results import ResultRow
from lasp_edge.protocol.frontier import reach_us
from lasp_edge.protocol.status import TENTATIVE
from lasp_edge.protocol.window_rows import MOST_NAMES
from simulations.world.fleet_streamed import RESULT
from simulations.world.sinks import AnySink


class _Known(NamedTuple):
    """What a sink held when it was looked at last."""

    rows: Mapping[Place, ResultRow]
    expected: frozenset[str]


class FleetNames:
    """Looks at whom the rows of sinks name."""

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}

    def wrong(
        self, sink: AnySink, rows: Mapping[Place, ResultRow], *, at_once: bool
    ) -> Iterator[str]:
        """Yield what is wrong with the names in rows that were written since the last look."""
        core, nothing = sink.lander.core, _Known({}, frozenset())
        before, reached_us = self._known.get(sink.lander.file, nothing), sink.lander.kept.reached_us
        now = _Known(rows, frozenset(core.coverage.expected))
        self._known[sink.lander.file] = now
        for place, row in rows.items():
            was = before.rows.get(place)
            if row.status == TENTATIVE:
                if at_once and row.excluded:
                    yield f"{sink.sink}: the tentative row at {place} names {row.excluded}"
            elif was is None or was.revision < row.revision:
                behind = {
                    each
                    for each in before.expected & now.expected
                    if reached_us.get(each, BOTTOM_US) <= place[0]
                }
                if was is not None and was.status != TENTATIVE:
                    behind |= {
                        each
                        for each in was.excluded
                        if reached_us.get(each, BOTTOM_US) <= place[0] and each in now.expected
                    }
                if not behind <= {*row.excluded} and len(row.excluded) < MOST_NAMES:
                    lacking = sorted(behind.difference(row.excluded))
                    yield f"{sink.sink}: the row at {place} does not name {lacking}"


def named_in_vain(sink: AnySink) -> Iterator[str]:
    """Yield the final rows that name a device which has sent all up to their time."""
    lander, streams = sink.lander, sink.lander.core.streams
    if streams is None or streams.frontier_us is None:
        return
    counting = {*lander.coverage.expected}.difference(lander.membership.entries)
    floor_us, nowhere = streams.floor_us(streams.frontier_us), (BOTTOM_US, BOTTOM_US)
    lacked: dict[int, frozenset[str]] = {}
    for gathering in streams.parted.gathered.values():
        for place, record in gathering.records.items():
            lacked[place[0]] = lacked.get(place[0], frozenset()) | record.missing
    for place, row in streams.stored(RESULT):
        for device in row.excluded[:MOST_NAMES] if row.status != TENTATIVE else ():
            since_us, until_us = lander.lost.get(device, nowhere)
            lacks = since_us <= place[0] < until_us or device in lacked.get(place[0], ())
            sent_us = reach_us(lander.promises.entries.get(device))
            if device in counting and floor_us <= place[0] < sent_us and not lacks:
                yield f"{sink.sink}: the row at {place} names {device}, which has promised past it"


def unnamed_in_rows(sink: AnySink) -> Iterator[str]:
    """Yield the rows that may lack readings of a device, as a store was lost, and name it not."""
    lander, core = sink.lander, sink.lander.core
    streams, frontier_us = core.streams, core.coverage.frontier
    counting = {*core.coverage.expected}.difference(lander.membership.entries)
    for device in sorted(counting & lander.lost.keys()):
        since_us, until_us = lander.lost[device]
        since_us = max(since_us, lander.kept.state.earlier[device].unknown_us)
        if streams is None or frontier_us is None:
            return
        since_us = max(since_us, streams.floor_us(max(frontier_us, streams.frontier_us or 0)))
        for place, row in streams.stored(RESULT):
            is_lost = row.status != TENTATIVE and since_us <= place[0] < until_us
            if is_lost and device not in row.excluded and len(row.excluded) < MOST_NAMES:
                yield f"{sink.sink}: the row at {place} may lack readings of {device}, unnamed"
                break
