"""Scans whose arguments are parameters: each event is stepped by the values of its own time.

Values of parameters hold from a place in the order of time, so a state before the place goes on
behind it under other arguments. So do timers: one is due, and rings, by the values that hold then;
what is overdue by new values rings at their place. For that the state of a scan with timers holds
the time of what brought it. An entry that comes late changes what all events behind its place were
stepped by, and these are stepped again, as behind a late reading.

Values under which there is no scan, or one of another form (its first state, parts or step, or
timers where there were none), count for nothing: the scan before them goes on.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from typing import Any

from crdts.control_log import BEFORE_ALL_US, ControlEntry, ControlLog, ControlPlace
from lasp_edge.errors import pass_interrupt
from lasp_edge.event import Event
from lasp_edge.folds.numbers import Resolution
from lasp_edge.language.declarations import Parameter
from lasp_edge.language.parameters import (
    ParameterValues,
    canonical,
    plain,
    steps_of,
    value_at,
)
from lasp_edge.language.plan import Plan
from lasp_edge.ordered.item_store import FOR_EVER_US
from lasp_edge.ordered.plain import same
from lasp_edge.ordered.scan import Scan, Stepped

NO_ENTRIES = ControlLog()
"""No operator has changed anything."""


class ParameterScan(Scan):
    """A scan that a function of parameters gives; without entries it is that of their defaults.

    Args:
        what: names the scan in errors.
        function: gives the scan for some values.
        uses: the parameters that it may ask for, by name.
        step: of the values of the events.

    Raises:
        ValueError: it gives no scan, or scans of different forms for a parameter's choices.
    """

    def __init__(
        self,
        what: str,
        function: Any,
        uses: tuple[Parameter, ...],
        step: Resolution | None,
    ) -> None:
        if isinstance(function, Scan) or not callable(function):
            raise ValueError(
                f"{what}: uses= names what the function of a scan asks for; write "
                "scan=lambda at: scans.sessions(gap_s=at[gap])"
            )
        self._what, self.function, self.uses, self._step = what, function, uses, step
        defaults = {each.name: each.default for each in uses}
        declared = self._declared = self._made(defaults)
        for each in uses:
            for choice in each.choices:
                self._need_alike(self._made(defaults | {each.name: choice}))
        self.name, self.version, self.parts = declared.name, declared.version, declared.parts
        self.resolution, self.tells_apart = declared.resolution, declared.tells_apart
        self.zero = (BEFORE_ALL_US, declared.zero) if declared.timed else declared.zero
        self._times_us, self._scans = [BEFORE_ALL_US], [declared]

    def under(self, log: ControlLog, device: str) -> "ParameterScan":
        """Return the scan under the operators' entries, as a device has them; "" for the fleet."""
        times_us: list[int] = []
        scans: list[Scan] = []
        for from_us, found in self._stretches(log, device):
            before = scans[-1] if scans else self._declared
            times_us.append(from_us)
            scans.append(before if isinstance(found, ValueError) else found)
        made = copy(self)
        made.__dict__.update(_times_us=times_us, _scans=scans)
        return made

    def unfit(self, log: ControlLog) -> set[str]:
        """Return why values of the fleet count for nothing."""
        found = (each for _, each in self._stretches(log, ""))
        return {str(each) for each in found if isinstance(each, ValueError)}

    def _stretches(self, log: ControlLog, device: str) -> Iterator[tuple[int, Scan | ValueError]]:
        """Yield from when on which scan holds, or why no scan does."""
        scopes = (device,) if device else ()
        steps = {each.name: steps_of(log, each, *scopes) for each in self.uses}
        for mark_us in sorted({mark_us for each in steps.values() for mark_us, _ in each}):
            try:
                found = self._made({name: value_at(each, mark_us) for name, each in steps.items()})
                self._need_alike(found)
            except ValueError as error:
                yield mark_us, error
            else:
                yield mark_us, found

    def _made(self, values: Mapping[str, str]) -> Scan:
        at = ParameterValues({each.name: plain(each, values[each.name]) for each in self.uses})
        try:
            found = self.function(at)
        except BaseException as error:
            pass_interrupt(error)
            raise ValueError(f"{self._what}: its scan cannot be made: {error}") from error
        found = found() if isinstance(found, type) and issubclass(found, Scan) else found
        if not isinstance(found, Scan):
            raise ValueError(
                f"{self._what}: scan=lambda at: ... must give a scan such as "
                f"scans.sessions(gap_s=at[gap]), not {found!r}"
            )
        return found.at(self._step)

    def _need_alike(self, other: Scan) -> None:
        declared = self._declared
        forms = [
            (dict(each.parts), each.resolution, each.tells_apart, each.timed)
            for each in (declared, other)
        ]
        if forms[0] != forms[1] or not same(declared.zero, other.zero):
            raise ValueError(
                f"{self._what}: first state, parts, step and timers of its scan must not depend on "
                f"parameters: {declared!r} and {other!r} differ in one of them"
            )

    def _at(self, time_us: int) -> Scan:
        return self._scans[max(0, bisect_right(self._times_us, time_us) - 1)]

    def step(self, state: Any, event: Event[Any]) -> Stepped:
        scan = self._at(event.time_us)
        if not self.timed:
            return scan.step(state, event)
        after, values = scan.step(state[1], event)
        return (event.time_us, after), values

    def due(self, state: Any) -> int | None:
        if not self.timed:
            return None
        first = max(0, bisect_right(self._times_us, state[0]) - 1)
        ends_us = [*self._times_us[first + 1 :], FOR_EVER_US]
        for scan, from_us, end_us in zip(
            self._scans[first:], self._times_us[first:], ends_us, strict=True
        ):
            due_us = scan.due(state[1])
            if due_us is not None and due_us < end_us:
                return max(due_us, from_us)
        return None

    def ring(self, state: Any, at_us: int) -> Stepped:
        after, values = self._at(at_us).ring(state[1], at_us)
        return (at_us, after), values

    @property
    def timed(self) -> bool:
        return self._declared.timed

    @property
    def fingerprint(self) -> str:
        defaults = [(each.name, canonical(each, each.default)) for each in self.uses]
        return f"{self._declared.fingerprint} of {defaults}"

    def __repr__(self) -> str:
        return repr(self._declared)


def entries_in(log: ControlLog) -> tuple[tuple[Any, ...], ...]:
    """Return the entries of a log as a plain value; equal logs, equal values."""
    return tuple(sorted((*at, *entry) for at, entry in log.entries.items()))


def log_of_entries(entries: Iterable[tuple[Any, ...]]) -> ControlLog:
    """Return the log that gave these entries."""
    return ControlLog({ControlPlace(*each[:3]): ControlEntry(*each[3:]) for each in entries})


def streamed_log(plan: Plan, device: str, log: ControlLog) -> ControlLog:
    """Return the entries that change streams of a device, or windows over them."""
    names = {each.name for stream in plan.streams.values() for each in stream.uses}
    for window in plan.windows.values():
        if window.source.name in plan.streams:
            names |= {each.name for each in window.controls.parameters}
    return ControlLog(
        {
            at: entry
            for at, entry in log.entries.items()
            if at.parameter in names and at.scope in {"", device}
        }
    )
