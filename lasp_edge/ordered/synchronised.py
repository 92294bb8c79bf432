"""Synchronised scans: an order over the whole fleet, of which devices can make parts themselves.

Most events may be taken in any order across devices, and a few must see all that came before them:
"end of shift" at a desk, and pieces at a hundred machines. `step` is all of the meaning, that of
any scan over the fleet. Three things beside it state what need not be in order:

- `depends`: pairs of events that must be in order across devices. Readings of one device are
  always in order.
- `share(state)`: what each device is given at an event that all wait for; one share for all.
- `join(state, part)`: the state with what a device has made of its share.

Laws (`lasp_edge.checking.synchronised`), for an event e that need not be in order and a part p that
was made of `share(s)`:

- C1: `join(s, step(p, e))` is `step(join(s, p), e)`, with the same outputs.
- C2: `join(s, share(s))` is s. So a device that is absent, or new, changes nothing.
- C3: events of two devices that do not depend on each other commute.
- C4: `join` is exact: whole numbers add up in any order, doubles do not.

**Theorem.** With C1 to C4, devices that step their own events from the shares, and whoever joins
their parts at the events in order, have the outputs of `step` over all events in one order.

Source: Kallas, Niksic, Stanford and Alur, "Stream processing with dependency-guided
synchronization", PPoPP 2022 (Flumina), whose fork gives the state and its share.
"""

from abc import abstractmethod
from typing import Any

from lasp_edge.errors import pass_interrupt
from lasp_edge.generics import Value_co
from lasp_edge.ordered.covers import MOST_EVENTS
from lasp_edge.ordered.plain import check_plain
from lasp_edge.ordered.scan import Scan
from lasp_edge.reasons import reason_of


class Synchronised(Scan[Value_co]):
    """A scan over the fleet whose local events need no order across devices. Define `step`, `join`.

    >>> from lasp_edge import scans
    >>> class Total(scans.Synchronised):
    ...     '''How much was made until each end of a shift.'''
    ...     name, zero, empty = "total", 0, 0
    ...     depends = (("end", "made"), ("end", "end"))
    ...
    ...     def step(self, state, event):
    ...         if event.name == "end":
    ...             return state, [state]
    ...         return state + round(event.value), []
    ...
    ...     def join(self, state, part):
    ...         return state + part
    >>> from lasp_edge.testing import check_scan, scan_outputs
    >>> scan_outputs(Total(), [3, 4, 1], names=["made", "made", "end"])
    [7]
    >>> check_scan(Total(), [3, 4, 1], names=["made", "made", "end"])

    Attributes:
        depends: pairs of names of events that must be in order across devices; (a, a) for an event
            that must be in order with itself.
        empty: the share, where it is the same at all times; else define `share`.
    """

    depends: tuple[tuple[str, str], ...] = ()
    empty: Any

    def share(self, state: Any) -> Any:  # noqa: ARG002 - most shares do not depend on it
        """Return what each device is given: the state from which it steps what it reads."""
        return self.empty

    @property
    def is_share_constant(self) -> bool:
        """Whether the share is always `empty`, so that nothing waits for it."""
        return type(self).share is Synchronised.share

    @abstractmethod
    def join(self, state: Any, part: Any) -> Any:
        """Return the state with a part: what a device has made of the state's share."""

    def __repr__(self) -> str:
        return type(self).__name__

    @property
    def tells_apart(self) -> tuple[str, ...]:  # type: ignore[override]  # it follows from `depends`
        """The names of the events in `depends`."""
        return tuple(dict.fromkeys(name for pair in self.depends for name in pair))

    def check(self) -> None:
        """Check what can be known without an event.

        Raises:
            ValueError: something is missing, or not what is needed.
        """
        if self.timed:
            raise ValueError(
                f"{self!r}: it has `due`, and what time alone brings is of no device; let an event "
                "mark the time"
            )
        if not _are_pairs(self.depends):
            raise ValueError(
                f"{self!r}: depends must be pairs of names of events that are in order across "
                f'devices, such as depends = (("end", "made"), ("end", "end")), not '
                f"{self.depends!r}"
            )
        if len(self.tells_apart) > MOST_EVENTS:
            raise ValueError(
                f"{self!r}: depends names {len(self.tells_apart)} events, and choices of those "
                f"that are in order are weighed for {MOST_EVENTS} at most; join some by a map"
            )
        if self.is_share_constant and not hasattr(self, "empty"):
            raise ValueError(
                f"{self!r}: write empty = ..., the state from which each device begins after an "
                "event in order; or share(state), where that depends on the state"
            )
        self._check_share()

    def _check_share(self) -> None:
        try:
            check_plain(self.zero)
            check_plain(self.share(self.zero))
        except BaseException as error:  # noqa: BLE001 - a user's function may raise anything
            pass_interrupt(error)
            raise ValueError(
                f"{self!r}: zero and share(zero) must be plain values: {reason_of(error)}"
            ) from None


def _are_pairs(depends: Any) -> bool:
    """Return whether there is at least one pair, and all are pairs of names."""
    return (
        isinstance(depends, tuple | list)
        and len(depends) > 0
        and all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in depends)  # noqa: PLR2004
        and all(isinstance(name, str) for pair in depends for name in pair)
    )
