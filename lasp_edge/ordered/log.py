"""The log of one key: its items in order, the state after each, and what came of each.

What comes at the end is stepped at once. What comes late, is replaced or is taken back changes the
log at its place, and the log is replayed from there until the encoding of the state is again what
it was: behind that nothing can differ, for the items behind it are the same. What timers say after
the last item is the tail.

A timer rings at `due`, or a microsecond after the item or timer that set it, if `due` is not later
than that. So every output stands behind its cause.

Cost: placing b changes takes O(b log n); a replay as many steps as the state needs to agree: w of
`last(w)`, 2 of `differences`, all behind it of a running total. Memory: some 600 bytes an item.

Source: optimistic replay after FlameStream (see `places`); cut-off by equal states after Acar,
"Self-Adjusting Computation", 2005.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from lasp_edge.errors import pass_interrupt
from lasp_edge.event import Event
from lasp_edge.ordered.calling import Failures
from lasp_edge.ordered.deltas import Change, Delta, netted, same_event
from lasp_edge.ordered.outputs import FIRST, NO_TAGS, LogName, Output, made_event, outputs_at
from lasp_edge.ordered.places import Place, timer_place
from lasp_edge.ordered.plain import check_plain, is_short, same
from lasp_edge.ordered.scan import MOST_RINGS, Scan
from lasp_edge.ordered.tail import LogTail

BEFORE_ALL_US: Final = -(2**62)
"""Before every time."""
ItemChange = tuple[Place, Event[Any] | None]
"""An item at its place; None: there is no item any more."""


class Checkpoint(NamedTuple):
    """The state of a key at a time up to which all is over: its log goes on from there.

    Attributes:
        state: after all items and timers before that time.
        last_us: when the last of them was.
        rings: timers since the last item.
    """

    state: Any
    last_us: int = BEFORE_ALL_US
    rings: int = 0


class _Stale:
    """What no state is the same as."""

    __slots__ = ()


_STALE: Final = _Stale()


class ScanLog:
    """The items of one key of a scan.

    Args:
        scan: what steps them.
        named: names the log.
        failures: of the scan's functions.
        base: where it goes on; None: nothing came before.

    Attributes:
        base: the state before the first item that is here.
        steps: how often `step` was called.
    """

    __slots__ = (
        "_failures",
        "_items",
        "_named",
        "_scan",
        "_states",
        "_tail",
        "_timed",
        "base",
        "outputs",
        "places",
        "steps",
    )

    def __init__(
        self,
        scan: Scan,
        named: LogName,
        failures: Failures,
        base: Checkpoint | None = None,
    ) -> None:
        self._scan, self._named, self._failures = scan, named, failures
        self._timed = scan.timed
        self.base = Checkpoint(scan.zero) if base is None else base
        self.places: list[Place] = []
        self._items: list[Event[Any]] = []
        self._states: list[Any] = []
        self.outputs: list[Sequence[Output]] = []
        self._tail = LogTail(*self.base)
        self.steps = 0

    def __len__(self) -> int:
        return len(self.places)

    @property
    def state(self) -> Any:
        """The state after all items and timers so far."""
        return self._tail.state

    @property
    def due_us(self) -> int | None:
        """When the next timer rings, if nothing comes before; None: never."""
        if not self._timed or self._tail.stuck:
            return None
        return self._due(self._tail)

    def append(  # noqa: C901, PLR0912, PLR0915 - the path that every item takes
        self, changes: Iterable[ItemChange], frontier_us: int | None = None
    ) -> Delta:
        """Take items that are all behind those that are here: `apply`, by a shorter way.

        No timer has rung that is due behind the first of them. `changes` are in order.
        """
        came = [each for each in changes if each[1] is not None]  # what is gone is not here
        before, tail = len(self.places), self._tail
        due = self._scan.due if self._timed else None
        places, states, outputs = self.places, self._states, self.outputs
        places += [place for place, _ in came]
        self._items += [event for _, event in came if event is not None]
        state, rung, come = tail.state, tail.outputs, dict[Place, Change]()
        step, failing, (stream, key, _) = self._scan.step, self._failures.places, self._named
        given: Sequence[Output]
        is_due = False
        for place, event in came:
            assert event is not None
            if due is not None:
                try:
                    at_us = due(state)
                    is_due = at_us is not None and at_us <= place[0]
                except BaseException as error:  # noqa: BLE001 - a user's function may raise anything
                    pass_interrupt(error)
                    is_due = True  # where it rings, that is found out
            if is_due:
                if len(states) > before:
                    tail.restart(state, places[len(states) - 1][0])
                fresh = len(rung)
                self._ring(tail, place[0], rung)
                state = tail.state
                for at, output in rung[fresh:]:
                    come[at] = (None, output)
                is_due = False
            try:
                after, values = step(state, event)
                if after is not state:
                    kind = type(after)  # most states are a number, or some numbers
                    if kind is tuple:
                        if not is_short(after):
                            check_plain(after)
                    elif kind is not float or after - after != 0.0:
                        check_plain(after)
                if not values:
                    given = ()
                elif len(values) == 1:
                    value, (time_us, device, tie, path) = values[0], place
                    if type(value) is not float or value - value != 0.0:
                        check_plain(value)
                    at = (time_us, device, tie, (*path, 0) if path else FIRST)
                    output = made_event((stream, value, time_us, event[3], event[4], key))
                    given, come[at] = ((at, output),), (None, output)
                else:
                    given = outputs_at(stream, key, values, place, event)
                    for at, output in given:
                        come[at] = (None, output)
            except BaseException as error:  # noqa: BLE001 - a user's function may raise anything
                self._failures.note(place, error)
                given = ()
            else:
                state = after
                if failing:
                    failing.pop(place, None)
            if rung:
                given, rung = [*rung, *given], []
                tail.outputs = rung
            states.append(state)
            outputs.append(given)
        if came:
            self.steps += len(came)
            tail.restart(state, places[-1][0])
            if due is not None and frontier_us is not None:
                come |= self.advance(frontier_us)
        return come

    def apply(self, changes: Sequence[ItemChange], frontier_us: int | None) -> Delta:
        """Change items, and return how that changes the outputs.

        Args:
            changes: in order of their places; what repeats what is here changes nothing.
            frontier_us: nothing older is expected: timers that are due before have rung.
        """
        if not changes:
            return {}
        first = changes[0][0]
        if self._tail.last_us <= first[0] and (not self.places or first > self.places[-1]):
            return self.append(changes, frontier_us)
        gone: dict[Place, Event[Any]] = {}
        come: dict[Place, Event[Any]] = {}
        dirty = self._put(changes, gone)
        if dirty:
            self._replay(dirty, gone, come, frontier_us)
        return netted(gone, come)

    def advance(self, frontier_us: int) -> Delta:
        """Ring what is due before the frontier, and return the outputs of that."""
        tail = self._tail
        before = len(tail.outputs)
        self._ring(tail, frontier_us - 1, tail.outputs)
        return {place: (None, event) for place, event in tail.outputs[before:]}

    def cut(self, time_us: int) -> Checkpoint:
        """Let go the items before a time that the frontier has passed; return where it goes on.

        Nothing may come any more that belongs before that time.
        """
        count = bisect_left(self.places, (time_us,))
        tail = self._tail_of(count)
        self._ring(tail, time_us - 1, [])
        self.base = Checkpoint(tail.state, tail.last_us, tail.rings)
        for column in (self.places, self._items, self._states, self.outputs):
            del column[:count]
        if self.places:
            self.outputs[0] = [each for each in self.outputs[0] if each[0][0] >= time_us]
        else:
            self._tail.outputs = [each for each in self._tail.outputs if each[0][0] >= time_us]
        return self.base

    def _tail_of(self, count: int) -> LogTail:
        """Return the state after the first items, before any timer."""
        if not count:
            return LogTail(*self.base)
        return LogTail(self._states[count - 1], self.places[count - 1][0])

    def _put(self, changes: Sequence[ItemChange], gone: dict[Place, Event[Any]]) -> list[int]:
        """Put changes in their places; return from where the log is to be replayed."""
        places, events, states, outputs = self.places, self._items, self._states, self.outputs
        dirty = []
        for place, new in changes:
            at = bisect_left(places, place)
            is_here = at < len(places) and places[at] == place
            if new is None:
                if not is_here:
                    continue
                gone.update(outputs[at])
                self._failures.passed(place)
                del places[at], events[at], states[at], outputs[at]
            elif not is_here:
                places.insert(at, place)
                events.insert(at, new)
                states.insert(at, _STALE)
                outputs.insert(at, ())
            elif same_event(events[at], new):
                continue
            else:
                events[at], states[at] = new, _STALE
            dirty.append(at)
        return dirty

    def _replay(
        self,
        dirty: list[int],
        gone: dict[Place, Event[Any]],
        come: dict[Place, Event[Any]],
        frontier_us: int | None,
    ) -> None:
        """Step from each changed place until the state is again what it was."""
        behind = 0
        for first in dirty:
            if first < behind:
                continue  # stepped already
            behind, agrees = self._step_from(first, gone, come)
            if not agrees:
                self._end(gone, come, frontier_us)
                return

    def _step_from(
        self, at: int, gone: dict[Place, Event[Any]], come: dict[Place, Event[Any]]
    ) -> tuple[int, bool]:
        """Step from a place on; return where that ended, and whether the state agrees there."""
        places, states, outputs = self.places, self._states, self.outputs
        tail, stepped, is_due = self._tail_of(at), self._stepped, self._is_due
        for here in range(at, len(places)):
            place = places[here]
            rung: list[Output] = []
            if self._timed and is_due(tail, place[0]):
                self._ring(tail, place[0], rung)
            state, given = stepped(tail.state, self._items[here], place)
            if rung:
                given = [*rung, *given]
            if given or outputs[here]:
                gone.update(outputs[here])
                come.update(given)
                outputs[here] = given
            before, states[here] = states[here], state
            tail.restart(state, place[0])
            if before is not _STALE and same(before, state):
                return here + 1, True
        return len(places), False

    def _end(
        self, gone: dict[Place, Event[Any]], come: dict[Place, Event[Any]], frontier_us: int | None
    ) -> None:
        """Ring again what is due after the last item."""
        gone.update(self._tail.outputs)
        self._tail = self._tail_of(len(self.places))
        if self._timed and frontier_us is not None:
            self._ring(self._tail, frontier_us - 1, self._tail.outputs)
        come.update(self._tail.outputs)

    def _stepped(self, state: Any, event: Event[Any], place: Place) -> tuple[Any, Sequence[Output]]:
        """Return state and outputs after an event; one whose step fails is left out."""
        self.steps += 1
        try:
            after, values = self._scan.step(state, event)
            if after is not state:
                check_plain(after)
            if not values:
                outputs: Sequence[Output] = ()
            else:
                outputs = outputs_at(*self._named[:2], values, place, event)
        except BaseException as error:  # noqa: BLE001 - a user's function may raise anything
            self._failures.note(place, error)
            return state, ()
        if self._failures.places:
            self._failures.passed(place)
        return after, outputs

    def _is_due(self, tail: LogTail, until_us: int) -> bool:
        """Return whether a timer may ring up to a time; where that fails, `_ring` finds out."""
        try:
            due_us = self._scan.due(tail.state)
            is_due = due_us is not None and due_us <= until_us
        except BaseException as error:  # noqa: BLE001 - a user's function may raise anything
            pass_interrupt(error)
            return True
        return is_due

    def _due(self, tail: LogTail) -> int | None:
        """Return when the next timer of a state rings."""
        try:
            due_us = self._scan.due(tail.state)
            if due_us is None:
                return None
            if type(due_us) is not int:
                raise ValueError(f"due must give whole microseconds, not {due_us!r}")  # noqa: TRY301
        except BaseException as error:  # noqa: BLE001 - a user's function may raise anything
            self._failures.note(
                timer_place(tail.last_us, self._named.stream, self._named.key), error
            )
            return None
        return max(due_us, tail.last_us + 1)

    def _ring(self, tail: LogTail, until_us: int, outputs: list[Output]) -> None:
        """Ring timers up to a time; one whose call fails has no output and changes nothing."""
        while not tail.stuck:
            at_us = self._due(tail)
            if at_us is None or at_us > until_us:
                return
            stream, key, device = self._named
            place = timer_place(at_us, stream, key)
            try:
                _check_rings(tail.rings)
                after, values = self._scan.ring(tail.state, at_us)
                check_plain(after)
                event = made_event((stream, None, at_us, device, NO_TAGS, ""))
                given = outputs_at(stream, key, values, place, event)
            except BaseException as error:  # noqa: BLE001 - a user's function may raise anything
                self._failures.note(place, error)
                tail.stuck = True
                return
            self._failures.passed(place)
            tail.state, tail.last_us, tail.rings = after, at_us, tail.rings + 1
            outputs += given


def _check_rings(rings: int) -> None:
    if rings == MOST_RINGS:
        raise ValueError(f"more than {MOST_RINGS} timers are due between two items")
