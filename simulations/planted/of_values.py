"""Bugs in the values of a device: what they are made from, and what is done for them, by its laws.

No unit test of the simulator finds these: each breaks a law that computes a value the slow way, or
looks at what a device does for one.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from crdts import ControlLog
from crdts.bounded_state import BoundedState, HeldSample
from device_agent.agent.acting.current import CurrentValues
from device_agent.agent.acting.watch import Watch
from device_agent.agent.fleet.absences import Absences
from device_agent.agent.fleet.agreement import Peers
from device_agent.agent.fleet.beats import Beats
from device_agent.agent.notices import Notices
from device_agent.agent.panes.cache import PaneCache
from device_agent.agent.state.counters import Counters
from device_agent.agent.stored_rows import Undelivered
from device_agent.agent.timing.judgement import Judgement
from device_agent.agent.timing.timing import Timing
from device_agent.agent.variables.samples import Sets
from lasp_edge.aggregates.local import WindowFold
from simulations.planted.bug import omitted, planted, replaced


@planted
def a_level_that_changed_is_looked_at_with_the_next_value() -> Iterator[None]:
    """Operators lower a level, and the alert stays off for as long as the value does not move."""
    moved = Watch.moved

    def late(self: Watch) -> Iterator[tuple[str, bool]]:
        self.trigger = self.values.trigger(self.watched)
        yield from moved(self)

    with replaced(Watch, "moved", late):
        yield


@planted
def a_set_that_became_smaller_is_not_folded_again() -> Iterator[None]:
    """Operators let a set keep less, and its value is that of samples which are gone."""
    hear = Sets.hear

    def heard(self: Sets, log: ControlLog) -> None:
        before = {name: dict(moved) for name, moved in self.moved.items()}
        hear(self, log)
        self.moved.update(before)

    with replaced(Sets, "hear", heard):
        yield


@planted
def values_of_the_fleet_count_before_its_devices_are_in() -> Iterator[None]:
    """A device starts again, and acts on the mean of itself and whoever was heard first."""
    is_ready = CurrentValues.is_ready

    def ready(self: CurrentValues, name: str) -> bool:
        self._agreed.pop(name, None)
        return is_ready(self, name)

    with replaced(CurrentValues, "is_ready", ready):
        yield


@planted
def who_is_cut_off_takes_all_others_for_silent() -> Iterator[None]:
    """A device without a connection counts the time in which it can hear nobody."""
    tick = Absences.tick

    def ticked(self: Absences, now_us: int) -> None:
        is_connected, self._is_connected = self._is_connected, lambda: True
        tick(self, now_us)
        self._is_connected = is_connected

    with replaced(Absences, "tick", ticked):
        yield


@planted
def a_late_delta_brings_samples_back() -> Iterator[None]:
    """A set takes samples again that have left it, from a delta that came late."""
    join = BoundedState.join_changes

    def joined(self: BoundedState, delta: Any) -> tuple[list[HeldSample], list[HeldSample]]:
        come, gone = join(self, delta)
        if delta.replica == self.replica:
            back = {seq: each for seq, each in delta.items.items() if seq <= self.lo}
            self.items |= back
            come = [*come, *back.values()]
        return come, gone

    with replaced(BoundedState, "join_changes", joined):
        yield


@planted
def a_queue_outlives_a_fold_of_the_whole_set() -> Iterator[None]:
    """Much of a set changes at once, and from then on its maximum is that of other samples."""
    update = WindowFold.update

    def updated(self: WindowFold, state: Any, moved: Any) -> bool:
        queue = self._queue
        changed = update(self, state, moved)
        self._queue = self._queue or queue
        return changed

    with replaced(WindowFold, "update", updated):
        yield


@planted
def a_process_measures_no_jump_from_the_one_before() -> Iterator[None]:
    """A clock jumps, the agent starts again, and the clock is trusted at once."""
    begin = Judgement._begin  # noqa: SLF001 - a bug is planted from outside

    def begun(self: Judgement, reading: Any) -> None:
        begin(self, reading)
        self._anchor = None

    with replaced(Judgement, "_begin", begun):
        yield


@planted
def the_stored_time_never_goes_back() -> Iterator[None]:
    """A clock that was ahead is set right, and each later process waits for the time it had."""
    keep = Timing._keep  # noqa: SLF001 - a bug is planted from outside

    def kept(self: Timing, reading: Any, offset_us: int) -> None:
        if self._past_us is None or offset_us + reading.monotonic_us >= self._past_us:
            keep(self, reading, offset_us)

    with replaced(Timing, "_keep", kept):
        yield


@planted
def what_is_counted_waits_for_the_next_notes() -> Iterator[None]:
    """An agent is killed, and of the lines that it refused its status names some."""

    def add(self: Counters, name: str, by: int = 1) -> None:
        self.note(name, by)

    with replaced(Counters, "add", add):
        yield


@planted
def what_waited_in_the_store_once_is_reported_for_ever() -> Iterator[None]:
    """All has landed, and status says of each sink how much waits for it."""
    waiting = PaneCache.waiting

    def waited(self: PaneCache) -> Sequence[Undelivered]:
        return self._stored or waiting(self)

    with replaced(PaneCache, "waiting", waited):
        yield


for _name, _history, _owner, _method, _says in (
    (
        "a_notice_outlives_its_reason",
        "A device is admitted again, and its people read that it is retired.",
        Notices,
        "end",
        None,
    ),
    (
        "who_falls_silent_without_a_will_stays_connected",
        "A broker crashes with the wills that it had, and the fleet waits for who is gone.",
        Peers,
        "expire",
        None,
    ),
    (
        "a_fleet_at_rest_beats_each_second",
        "Nothing is new, and each device sends ten times as much as it has to.",
        Beats,
        "_is_due",
        True,
    ),
):
    omitted(_name, _history, _owner, _method, _says)
