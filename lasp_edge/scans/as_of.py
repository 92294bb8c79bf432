"""`as_of(left, right, within_s)`: each event of one kind with the newest one of another.

    >>> from lasp_edge import scans
    >>> from lasp_edge.testing import scan_outputs
    >>> both = scans.as_of("temperature", "humidity", within_s=60)
    >>> scan_outputs(both, [20.0, 50, 21.5], names=["temperature", "humidity", "temperature"])
    [(21.5, 50)]
    >>> last_known = scans.as_of("temperature", "humidity", missing=-1)
    >>> scan_outputs(last_known, [20.0, 50, 21.5], names=["temperature", "humidity", "temperature"])
    [(20.0, -1), (21.5, 50)]

Two of one time meet, whichever stands first in the order: an event waits until its instant is over.
Of several `right` at one time the last one in the order counts. A `left` without a `right`, or with
one that is older than `within_s`, has no output; with `missing` it has that in its place:

    >>> times_s = [60, 0, 61]  # what is exactly as old as that counts
    >>> scan_outputs(both, [21.0, 50, 22.0], names=["temperature", "humidity", "temperature"],
    ...         times_s=times_s)
    [(21.0, 50)]
    >>> scan_outputs(both, [21.0, 50, 51], names=["temperature", "humidity", "humidity"],
    ...         times_s=[5, 5, 5])
    [(21.0, 51)]

Law: each `left` has at most one output, with the `right` that is newest up to its time. Cost: a
late `left` brings one result; a late `right` revises those up to the next one.
"""

from typing import Any

from lasp_edge.event import Event
from lasp_edge.ordered.plain import check_plain, encoded
from lasp_edge.ordered.scan import Scan, Stepped
from lasp_edge.scans.arguments import microseconds
from lasp_edge.variables import Variable


class AsOfJoin(Scan[tuple[Any, Any]]):
    """The value of each `left`, and that of the newest `right`, as a pair.

    It comes a microsecond after `left`, by time alone: see the module.

    >>> from lasp_edge import scans
    >>> from lasp_edge.testing import scan_outputs
    >>> both = scans.as_of("temperature", "humidity", within_s=60)
    >>> scan_outputs(both, [50, 21.5, 22.0], names=["humidity", "temperature", "temperature"],
    ...         times_s=[0, 60, 61])
    [(21.5, 50)]

    Args:
        left: the event or stream, or its name, each event of which has an output.
        right: the one that is looked up.
        within_s: how old it may be, in seconds, this age included; None: the last known one,
            however old.
        missing: the value in place of a `right` that is not there. Without it, a `left` that has
            no `right` has no output.
    """

    name, zero, local = "as_of", ((), ()), True

    def __init__(
        self,
        left: Any = None,
        right: Any = None,
        within_s: float | None = None,
        *,
        missing: Any = (),
    ) -> None:
        self._left, self._right = _name(left), _name(right)
        if self._left == self._right:
            raise ValueError(f"as_of: two different events are needed, not twice {self._left!r}")
        self._within_us = None if within_s is None else microseconds(within_s, "as_of: within_s")
        check_plain(missing)
        self.missing = missing
        self.tells_apart = (self._left, self._right)

    def step(self, state: Any, event: Event[Any]) -> Stepped:
        waiting, right = state
        now = (event.time_us, event.value)
        if event.name == self._right:
            return (waiting, now), ()
        return ((*waiting, now) if event.name == self._left else waiting, right), ()

    def due(self, state: Any) -> int | None:
        return state[0][0][0] + 1 if state[0] else None

    def ring(self, state: Any, at_us: int) -> Stepped:  # noqa: ARG002 - the contract
        waiting, right = state
        pairs = [(value, self._known(right, time_us)) for time_us, value in waiting]
        return ((), right), [pair for pair in pairs if pair[1] != ()]

    def _known(self, right: Any, time_us: int) -> Any:
        """Return the newest `right` that counts at a time, or what stands for it."""
        is_old = self._within_us is not None and right and time_us - right[0] > self._within_us
        return right[1] if right and not is_old else self.missing

    @property
    def fingerprint(self) -> str:
        shape = f"{super().fingerprint} {self._left} {self._right} {self._within_us}"
        return shape if self.missing == () else f"{shape} {encoded(self.missing).hex()}"


def _name(source: Any) -> str:
    """Return the name of an event or stream, given itself or its name."""
    name = source if isinstance(source, str) else getattr(source, "name", None)
    if not isinstance(name, str) or isinstance(source, Variable):
        raise ValueError(
            "as_of: write scans.as_of(left, right, within_s=60), each an event, a stream or its "
            f"name, not {source!r}"
        )
    return name
