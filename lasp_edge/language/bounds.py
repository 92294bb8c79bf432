"""The bound of a set that a parameter gives: how many samples are kept, by their own time.

The bound of a set is that at the greatest time of the samples that it was given. Bounds are ordered
by the entries that hold by then, so every tier knows which of two is the newer, whatever it has
received itself. A value that no set can have (0, or less) counts for nothing: the one before it
goes on.

    >>> from crdts import ControlLog
    >>> from lasp_edge import Program
    >>> last = Program("greenhouse").parameter("last", "100")
    >>> log = ControlLog()
    >>> log |= log.set("last", "", 60_000_000, "200", "ann")
    >>> steps = bounds_of(log, last)
    >>> bound_at(steps, 59_999_999).samples, bound_at(steps, 60_000_000)
    (100, Bound(number=1, from_us=60000000, samples=200))
"""

from bisect import bisect_right
from collections.abc import Sequence
from decimal import Decimal

from crdts import ControlLog
from crdts.control_log import BEFORE_ALL_US, FLEET
from crdts.replica import SEQS
from lasp_edge.folds.bounds import Bound
from lasp_edge.language.declarations import Parameter
from lasp_edge.language.parameters import is_value

BoundSteps = Sequence[tuple[int, Bound]]
"""(from when on, bound), by time; the first one is from before all."""


def bounds_of(log: ControlLog, parameter: Parameter) -> BoundSteps:
    """Return the bound by time, from the entries of the whole fleet."""
    steps = log.steps(parameter.name, counts=lambda text: is_bound(parameter, text))
    values = [(step.from_us, int(Decimal(step.value or parameter.default))) for step in steps]
    found, number = [(BEFORE_ALL_US, Bound(0, 0, int(Decimal(parameter.default))))], 0
    for from_us, entry in log.places(parameter.name, FLEET):
        number = max(number, entry.number)
        at = bisect_right(values, from_us, key=lambda step: step[0]) - 1
        found.append((from_us, Bound(number, from_us, values[at][1])))
    return found


def bound_at(steps: BoundSteps, time_us: int) -> Bound:
    """Return the bound of a set whose samples reach to a time."""
    return steps[max(0, bisect_right(steps, time_us, key=lambda step: step[0]) - 1)][1]


def is_bound(parameter: Parameter, text: str) -> bool:
    """Return whether a text can be the bound of a set."""
    return is_value(parameter, text) and 0 < int(Decimal(text)) < SEQS


def unfit(log: ControlLog, parameter: Parameter) -> frozenset[str]:
    """Return the values of the whole fleet's entries that no bound can be."""
    given = {entry.value for _, entry in log.places(parameter.name, FLEET)}
    texts = {each for each in given if each and is_value(parameter, each)}
    return frozenset(each for each in texts if not is_bound(parameter, each))
