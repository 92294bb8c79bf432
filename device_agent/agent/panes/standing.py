"""How things stand with each sink, for people: what it has not taken yet, and why."""

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

from device_agent.agent.changes import SinkRow
from device_agent.agent.stored_rows import Undelivered, reason_of
from lasp_edge.protocol.acks import reason_text


def standing(
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
        former += 0 if each.stream in streams else each.entries
        if each.refused & bit:
            refused[reason_text(reason_of(each.refused))] += each.entries
    return {
        "waiting": waits,
        "of_former_programs": former,
        "not_taken": dict(sorted(refused.items())),
    }
