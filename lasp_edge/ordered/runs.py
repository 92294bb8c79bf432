"""Runs: the events of a device's half of a scan, with a state for some hundreds of them.

Local events are many, and nobody asks for the state behind each of them. So this log keeps one for
a **run** of them: up to the next event in order, or to some hundreds. What changes in a run steps
it from its begin, and the runs behind it until the state is what it was. No tuple, list or function
is made for an event that gives no row.

Law: its outputs, failures and cuts are those of a `ScanLog` of the same half.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from operator import itemgetter
from typing import Any, Final

from lasp_edge.errors import pass_interrupt
from lasp_edge.event import Event
from lasp_edge.ordered.calling import Failures
from lasp_edge.ordered.deltas import Delta, netted, same_event
from lasp_edge.ordered.log import Checkpoint, ItemChange
from lasp_edge.ordered.outputs import outputs_at
from lasp_edge.ordered.places import Place
from lasp_edge.ordered.plain import are_plain, check_plain, is_short, same
from lasp_edge.ordered.scan import Scan

SHARED: Final = ""
"""The name of an event in order, as a device's half sees it; events of programs have others."""
ROW: Final = "r"
"""What stands first in a row that a half gives."""
MOST: Final = 256
"""Events of a run, about: a late event steps as many again."""

_Outputs = dict[Place, Event[Any]]
_place_of = itemgetter(0)


class EventRun:
    """Events that follow each other: local ones, and before them perhaps one in order.

    Attributes:
        places, events: in order.
        stepped: how many of them were stepped.
        state: behind these; of a run that is stepped again, what it was before.
        outputs: of these, by place.
    """

    __slots__ = ("events", "outputs", "places", "state", "stepped")

    def __init__(self, places: list[Place], events: list[Event[Any]], state: Any = None) -> None:
        self.places, self.events, self.state = places, events, state
        self.outputs: _Outputs = {}
        self.stepped = 0

    def restart(self, gone: _Outputs) -> None:
        """Let all of it be stepped again; its outputs are gone until then."""
        gone.update(self.outputs)
        self.outputs, self.stepped = {}, 0

    def divided(self, at: int) -> "EventRun":
        """Divide a run that is stepped again; return the part from a place on."""
        behind = EventRun(self.places[at:], self.events[at:], self.state)
        del self.places[at:], self.events[at:]
        self.state = None
        return behind


def _first_place(run: EventRun) -> Place:
    return run.places[0]


class RunLog:
    """The events of one key of a device's half. Its state is a `LeafScan`'s; () in wait.

    Args:
        half: steps events in order, and knows the first state.
        stepper: steps local events, from what was made of the share.
        key: the key.
        failures: of the scan's functions.
        base: where it goes on; None: nothing came before.

    Attributes:
        base: the state before the first event that is here.
        steps: how often an event was stepped.
    """

    __slots__ = ("_failures", "_gone", "_half", "_key", "_runs", "_stepper", "base", "steps")

    def __init__(
        self,
        half: Scan[Any],
        stepper: Scan[Any],
        key: str,
        failures: Failures,
        base: Checkpoint | None = None,
    ) -> None:
        self._half, self._stepper, self._key, self._failures = half, stepper, key, failures
        self.base = Checkpoint(half.zero) if base is None else base
        self._runs: list[EventRun] = []
        self._gone: _Outputs = {}
        self.steps = 0

    def __len__(self) -> int:
        return sum(len(run.places) for run in self._runs)

    @property
    def due_us(self) -> int | None:
        """When a timer is due: never."""
        return None

    def apply(self, changes: Sequence[ItemChange], frontier_us: int | None = None) -> Delta:  # noqa: ARG002
        """Change events, and return how that changes the outputs.

        Args:
            changes: in order of their places; what repeats what is here changes nothing.
            frontier_us: has no meaning here, without timers.
        """
        runs, late = self._runs, 0
        if runs:
            late = bisect_right(changes, runs[-1].places[-1], key=_place_of)
        for place, new in changes[:late]:
            self._put(place, new)
        come = [each for each in changes[late:] if each[1] is not None]
        self._append([each[0] for each in come], [each[1] for each in come])
        gone, self._gone = self._gone, {}
        return netted(gone, self._step(gone))

    def insert(self, places: list[Place], events: list[Event[Any]]) -> None:
        """Insert local events that are new, in order; the next `apply` steps them.

        Most are behind all that is here, or behind the others of their run: those go by columns.
        """
        at, count, runs = 0, len(places), self._runs
        while at < count:
            number = bisect_right(runs, places[at], key=_first_place) - 1
            behind = runs[number + 1 : number + 2]
            end = bisect_left(places, behind[0].places[0], at) if behind else count
            if number >= 0 and places[at] < runs[number].places[-1]:
                end = bisect_left(places, runs[number].places[-1], at, end)
                for place, event in zip(places[at:end], events[at:end], strict=True):
                    self._put(place, event)
            elif behind:
                runs[number + 1 : number + 1] = [
                    EventRun(places[n : min(n + MOST, end)], events[n : min(n + MOST, end)])
                    for n in range(at, end, MOST)
                ]
            else:
                self._append(places[at:], events[at:])
            at = end

    def advance(self, frontier_us: int) -> Delta:  # noqa: ARG002
        """Return what time alone brings: nothing."""
        return {}

    def cut(self, time_us: int) -> Checkpoint:
        """Let go the events before a time that the frontier has passed; return where it goes on."""
        runs, base = self._runs, self.base
        over = next((n for n, run in enumerate(runs) if run.places[-1][0] >= time_us), len(runs))
        if over:
            base = Checkpoint(runs[over - 1].state, runs[over - 1].places[-1][0])
            del runs[:over]
        count = bisect_left(runs[0].places, (time_us,)) if runs else 0
        if count:
            run = runs[0]
            first = EventRun(run.places[:count], run.events[:count])
            self._step_run(first, base.state, Failures())  # what fails is known
            base = Checkpoint(first.state, first.places[-1][0])
            del run.places[:count], run.events[:count]
            run.outputs = {at: each for at, each in run.outputs.items() if at[0] >= time_us}
            run.stepped -= count
        self.base = base
        return base

    def _append(self, places: list[Place], events: list[Any]) -> None:
        """Add events behind all others."""
        runs = self._runs
        begins = [at for at, event in enumerate(events) if event[0] == SHARED]
        at, count = 0, len(events)
        while at < count:
            if not runs or events[at][0] == SHARED or len(runs[-1].places) >= MOST:
                runs.append(EventRun([], []))
            run, number = runs[-1], bisect_right(begins, at)
            end = min(at + MOST - len(run.places), *begins[number : number + 1], count)
            run.places += places[at:end]
            run.events += events[at:end]
            at = end

    def _put(self, place: Place, new: Event[Any] | None) -> None:
        """Put a change that is not behind all events in its place."""
        runs, gone = self._runs, self._gone
        number = max(0, bisect_right(runs, place, key=_first_place) - 1)
        run = runs[number]
        at = bisect_left(run.places, place)
        is_here = at < len(run.places) and run.places[at] == place
        if (new is None and not is_here) or (is_here and same_event(run.events[at], new)):
            return
        run.restart(gone)
        if new is None:
            self._failures.passed(place)
            del run.places[at], run.events[at]
            if not run.places:
                del runs[number]
                if number < len(runs):
                    runs[number].restart(gone)
        elif is_here:
            run.events[at] = new
        else:
            self._insert(number, at, place, new)

    def _insert(self, number: int, at: int, place: Place, new: Event[Any]) -> None:
        """Insert an event into a run that is stepped again; one in order begins another run."""
        run, runs = self._runs[number], self._runs
        if not at:  # before all others
            runs.insert(number, EventRun([place], [new]))
        elif new[0] == SHARED:
            behind = run.divided(at)
            behind.places.insert(0, place)
            behind.events.insert(0, new)
            runs.insert(number + 1, behind)
        else:
            run.places.insert(at, place)
            run.events.insert(at, new)
            if len(run.places) > 2 * MOST:
                runs.insert(number + 1, run.divided(MOST))

    def _step(self, gone: _Outputs) -> _Outputs:
        """Step new events and their consequences; return the outputs."""
        come: _Outputs = {}
        state, agrees = self.base.state, True
        for run in self._runs:
            if agrees and run.stepped == len(run.places):
                state = run.state
                continue
            if not agrees:
                run.restart(gone)
            before = run.state
            come |= self._step_run(run, run.state if run.stepped else state, self._failures)
            state = run.state
            agrees = before is not None and same(before, state)
        return come

    def _step_run(self, run: EventRun, state: Any, failures: Failures) -> _Outputs:
        """Step the events of a run that were not; return their outputs."""
        places, events, at = run.places, run.events, run.stepped
        self.steps += len(places) - at
        come: _Outputs = {}
        if not at and events[0][0] == SHARED:
            state, come = self._answered(state, places[0], events[0], failures)
            at = 1
        if state:
            state = self._made(state, places[at:], events[at:], failures, come)
        elif failures.places:
            for place in places[at:]:
                failures.passed(place)
        run.state, run.stepped = state, len(places)
        run.outputs |= come
        return come

    def _answered(
        self, state: Any, place: Place, event: Event[Any], failures: Failures
    ) -> tuple[Any, _Outputs]:
        """Return the state behind an event in order, and the answer; without where it fails."""
        try:
            after, values = self._half.step(state, event)
            check_plain(after)
            come = dict(outputs_at("", self._key, values, place, event))
        except BaseException as error:  # noqa: BLE001 - a user's function may raise anything
            failures.note(place, error)
            return state, {}
        failures.passed(place)
        return after, come

    def _made_together(
        self, made: Any, places: list[Place], events: list[Event[Any]]
    ) -> tuple[Any, _Outputs] | None:
        """Return state and rows as `_made` does, where no event fails; None where one may.

        What `step` gave is checked by columns.
        """
        step, states, given = self._stepper.step, [], []
        try:
            for event in events:
                made, values = step(made, event)
                states.append(made)
                given.append(values)
            if not are_plain(states):
                return None
            come: _Outputs = {}
            for at in [at for at, values in enumerate(given) if values]:
                rows = [(ROW, value) for value in given[at]]
                come.update(outputs_at("", self._key, rows, places[at], events[at]))
        except BaseException as error:  # noqa: BLE001 - a user's function may raise anything
            pass_interrupt(error)
            return None
        return made, come

    def _made(
        self,
        state: Any,
        places: list[Place],
        events: list[Event[Any]],
        failures: Failures,
        come: _Outputs,
    ) -> Any:
        """Return the state behind local events, and put the rows that they give into `come`."""
        basis, made, has_made, *others = state
        if events and not failures.places:
            together = self._made_together(made, places, events)
            if together is not None:
                come |= together[1]
                return basis, together[0], True, *others
        step, failing = self._stepper.step, failures.places
        for place, event in zip(places, events, strict=True):
            try:
                after, values = step(made, event)
                if after is not made and (type(after) is not tuple or not is_short(after)):
                    check_plain(after)
                if values:
                    rows = [(ROW, value) for value in values]
                    come.update(outputs_at("", self._key, rows, place, event))
            except BaseException as error:  # noqa: BLE001 - a user's function may raise anything
                failures.note(place, error)
                continue
            if failing:
                failing.pop(place, None)
            made, has_made = after, True
        return (basis, made, has_made, *others) if has_made else state
