"""The pane entries that each sink has not taken yet, and why, for people."""

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

from device_agent.agent.changes import SinkRow
from device_agent.agent.stored_rows import Undelivered, reason_of
from lasp_edge.protocol.acks import NotTaken, reason_text

NO_LONGER_THERE = (
    "of a window that neither this program nor the sink's has any more: nothing is to be done; "
    "they stay, and land where a sink has that window again"
)
"""The reason for entries of a former program that a sink has no window for."""


def undelivered_by_sink(
    sinks: Sequence[SinkRow], waiting: Sequence[Undelivered], streams: Collection[int]
) -> dict[str, dict[str, Any]]:
    """Return by sink: its store, and how many pane entries wait for it.

    Args:
        sinks: all of them; the place of each is its bit.
        waiting: the dirty entries.
        streams: those of the program; entries of others belong to a former program.
    """
    return {
        sink.name: {"store": sink.store, **_of_one(1 << place, waiting, streams)}
        for place, sink in enumerate(sinks)
        if sink.name
    }


def _of_one(bit: int, waiting: Sequence[Undelivered], streams: Collection[int]) -> dict[str, Any]:
    refused: Counter[str] = Counter()
    waits = former = 0
    for each in waiting:
        if not each.dirty & bit:
            continue
        waits += each.entries
        is_former, reason = each.stream not in streams, reason_of(each.refused)
        former += each.entries if is_former else 0
        if each.refused & bit:
            is_gone = is_former and reason == NotTaken.UNKNOWN_STREAM
            refused[NO_LONGER_THERE if is_gone else reason_text(reason)] += each.entries
    return {
        "waiting": waits,
        "of_former_programs": former,
        "not_taken": dict(sorted(refused.items())),
    }
