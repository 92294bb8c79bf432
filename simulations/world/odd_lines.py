"""Lines of a recording that are no readings: each is refused and counted, and nothing else is.

Every third line follows such a one, and with every fifth come two of which its source says that
they cannot be read. So how many a device has refused follows from the line that its store resumes
at, whatever befell it.

>>> [odd_before(lines) for lines in range(9)]
[0, 0, 1, 3, 3, 4, 4, 4, 7]
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from device_agent.agent.intake.batch import Batch
from simulations.world.scenario import Scenario

ODD_EVERY: Final = 6
"""Of as many worlds one has lines that are no readings, where none come in columns."""
_THIRD, _FIFTH = (3, 1), (5, 2)
_UNREADABLE: Final = "a line that cannot be read"
_KINDS: Final[Sequence[tuple[str, Any, bool, float]]] = (
    ("unheard of", 1, True, 0),
    ("timed", "warm", True, 0),
    ("timed", 4, False, 0),  # it has no room, for which the program asks
    ("timed", float("nan"), True, 0),
    ("timed", 2.0**40, True, 0),
    ("timed", 4, True, 0.5),
    ("timed", None, True, 0),
)
"""Event, value, whether it has its tags, and what is added to its time."""


def has_odd_lines(scenario: Scenario) -> bool:
    """Return whether there are lines that are no readings in a scenario's recordings."""
    return scenario.seed % ODD_EVERY == ODD_EVERY - 2 and not scenario.columns


def odd_before(lines: int) -> int:
    """Return how many refusals there are before a line of a recording."""
    odd, unreadable = ((lines + every - 1 - at) // every for every, at in (_THIRD, _FIFTH))
    return odd + 2 * unreadable


def with_odd_lines(batch: Batch, first: int) -> Batch:
    """Return a batch with the lines that are no readings; `first` is the number of its first."""
    names, times_us, values, tags = [], [], [], list[Mapping[str, str]]()
    columns = zip(batch.names, batch.times_us, batch.values, batch.tags, strict=True)
    for line, (name, time_us, value, own) in enumerate(columns, first):
        if line % _THIRD[0] == _THIRD[1]:
            event, odd, is_tagged, more = _KINDS[line // _THIRD[0] % len(_KINDS)]
            names.append(event)
            times_us.append((time_us or 0) + more if more else time_us)
            values.append(odd)
            tags.append(own if is_tagged else {})
        names.append(name)
        times_us.append(time_us)
        values.append(value)
        tags.append(own)
    last = first + len(batch)
    unreadable = 2 * sum(line % _FIFTH[0] == _FIFTH[1] for line in range(first, last))
    refused = {_UNREADABLE: unreadable} if unreadable else {}
    return Batch(batch.source, names, times_us, values, tags, batch.cursor, refused)  # type: ignore[arg-type]
