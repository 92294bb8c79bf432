"""The sinks that this device delivers to: their names, their stores, and what may be believed.

A sink is known from its first acknowledgement on. Each has a bit, and a pane entry is dirty for the
sinks of its bits. One place is kept from the start, so that entries are dirty before anybody has
answered: it has the default name, and belongs to the sink that answers first.

- A store that was never known takes the place of the one before at once: a lost lake was made
  again, and everything is dirty for it. After `MOVES_AT_ONCE` such moves another one is believed
  only after a while that doubles each time: who forges acknowledgements does not have everything
  sent for ever, and it is counted and reported.
- A store that follows from the present one, as a gateway's does at each start, takes its place and
  has all that is clean for it, unless it lacks a commit after which an entry was acknowledged: its
  file was cut, or put back, and then it is one that was never known.
- A store that was left before comes back only when the present one was silent for `LEFT_US`. Until
  then two of one name are alive, each would have everything sent again for ever, and it is
  reported instead.
- An answer of a store from before the present one's is late, by the landers' clocks: it does not
  come back by that, nor does one that was never known, unless the present one was silent for
  as long.
- A lake has one id until it was put back to an earlier state: then it hears of a commit that it
  lacks, of those that devices repeat, and is another store.
- What was recorded and is sent again tells nothing: an answer counts as a sign of life, and brings
  another store or sink, only if its clock is later than any before, or if it names an entry that is
  later than all that the sink has answered. Nobody can have recorded that. A sink's clock counts
  up to the device's own, where that is trusted: one that was ahead and was set right would else
  hold another store back for as long.
- There are at most `MAX_SINKS`, and one that is silent for as long as readings are kept, and for
  `LEFT_US`, is forgotten while another one answers: strangers cannot make entries dirty for ever.

Silence is counted while the agent runs, by its ticks: no clock that is set makes a sink look gone.
"""

from collections.abc import Iterator
from dataclasses import replace

from device_agent.agent.changes import Changes, Facts, SinkRow
from device_agent.agent.panes.flights import FIRST_TIMEOUT_US, Flights
from device_agent.agent.panes.sink import MUCH_LATER_S, Sink
from device_agent.agent.state.counters import Counters
from device_agent.agent.stored_rows import EntryKey, StoreWide
from lasp_edge.protocol.acks import AckFrame
from lasp_edge.protocol.sinks import DEFAULT_SINK, LEFT_US, MAX_SINKS

FORGOTTEN = "sink: {!r} was silent for long and is forgotten"
"""The note of a sink that was forgotten, with its name."""
LONGEST_TICK_US = 60_000_000
"""Microseconds of silence that one tick counts, at most: the clock may have been set meanwhile."""
SILENCE_KEPT_US = 3_600_000_000
"""Microseconds of silence after which it is stored how long it lasts: an hour."""
SLOWEST_US = 600_000_000
"""Microseconds until what a slow sink has not answered is sent again, at most, the first time."""

TWO_STORES = (
    "two stores are called {!r}: give one of them another name, a gateway by --name, a lander by "
    "--sink"
)
STRANGERS = (
    "{!r} names one new store after another, so the next must wait: somebody forges "
    "acknowledgements, if no lake was made again; see lasp-edge broker"
)
TOO_MANY = (
    f"one answers beside the {MAX_SINKS} that are known, and gets nothing: stop those that are not "
    "yours; see lasp-edge broker"
)
MOVES = "sinks: another store, and everything is sent to it"
"""What a move to another store is counted as."""


class Sinks:
    """All sinks of a device.

    Args:
        rows: what the store holds; None for a new one.
        forget_us: silence after which a sink is forgotten.
        counters: where what is not believed is counted.

    Attributes:
        changes: what is to be committed; whoever takes it puts None in its place.
        unstored: changes of many stored entries that are not committed yet.
        has_commits: a sink took an entry after a later commit, or has another store, and that is
            not stored yet.
    """

    def __init__(
        self, rows: tuple[SinkRow, ...] | None, forget_us: int, counters: Counters
    ) -> None:
        rows = rows or (SinkRow(DEFAULT_SINK),)
        self._places: list[Sink | None] = [
            Sink(place, row, Flights()) if row.name else None for place, row in enumerate(rows)
        ]
        self._present = _present(self._places)
        self._forget_us = forget_us
        self._counters = counters
        self.changes: Changes | None = None
        self.unstored = Changes()
        self._dirtied = 0
        self._tick_us: int | None = None
        self._kept_us = self._silences()
        self.has_commits = True

    def __iter__(self) -> Iterator[Sink]:
        return iter(self._present)

    @property
    def bits(self) -> int:
        """The bits of all sinks."""
        return sum(sink.bit for sink in self)

    def is_in_flight(self, entry: EntryKey) -> bool:
        """Return whether a frame with this version of an entry is not answered yet."""
        return any(sink.flights.holds(entry) for sink in self._present)

    def first_retry_us(self) -> int:
        """Return after which time an entry that was sent is sent again, without an answer."""
        slowest_us = max(sink.flights.latency_us for sink in self)
        return max(FIRST_TIMEOUT_US, min(3 * slowest_us // 2, SLOWEST_US))

    def hear(self, frame: AckFrame, own_s: int | None = None) -> Sink | None:
        """Return the sink that an acknowledgement is of; None where it does not count.

        Args:
            frame: the acknowledgement.
            own_s: the device's own clock, seconds since the epoch; None where it is not trusted.
        """
        if own_s is not None:
            for each in self:
                each.bound(own_s)
            frame = _bounded(frame, own_s)
        named = _latest_named(frame)
        sink = self._named(frame.sink) or self._add(frame, named)
        if sink is None:
            return None
        clock_s, is_later = frame.clock_s or sink.latest_s + 1, named > sink.answered
        is_new = is_later or clock_s > sink.latest_s
        is_old = not is_later and clock_s < sink.latest_s
        is_moved = frame.store != sink.store
        if is_moved and not self._moves(sink, frame, is_old=is_old):
            return None
        sink.ancestors = tuple([former.store for former in frame.former]) or sink.ancestors
        self.has_commits |= is_moved or bool(frame.former)  # and what the answer states besides
        sink.hear(frame.clock_s, is_new=is_new)
        sink.answered = max(sink.answered, named)
        if frame.taken and frame.number > sink.commit:
            sink.commit, self.has_commits = frame.number, True
        if frame.taken and frame.commit > sink.landed:
            sink.landed, self.has_commits = frame.commit, True
        return sink

    def _named(self, name: str) -> Sink | None:
        """Return the sink of a name; the place that is kept is whose answers first."""
        for sink in self:
            if sink.name == name:
                return sink
        for sink in self:
            if not sink.store:
                sink.name = name
                return sink
        return None

    def _add(self, frame: AckFrame, named: tuple[int, int, int]) -> Sink | None:
        """Deliver to one more sink, unless its answer is old, or there is no room."""
        latest_s = max(each.latest_s for each in self)
        spoken_s = latest_s if frame.clock_s is None else frame.clock_s
        answered = max(each.answered for each in self)
        if named < answered and spoken_s < latest_s - MUCH_LATER_S:
            self._counters.note("frame: old acknowledgement of a sink that is not known")
            return None
        if None not in self._places and len(self._places) < MAX_SINKS:
            self._places.append(None)
        if None not in self._places:
            self._counters.note("frame: acknowledgement of one sink too many")
            self._counters.note(f"sink: {TOO_MANY}")
            return None
        place = self._places.index(None)
        sink = self._places[place] = Sink(place, SinkRow(frame.sink), Flights())
        self._present = _present(self._places)
        self._make_dirty(sink)
        return sink

    def _moves(self, sink: Sink, frame: AckFrame, *, is_old: bool) -> bool:
        """Return whether the sink has another store from now on."""
        store, is_late = frame.store, sink.is_late(frame.clock_s)
        known = dict(frame.former).get(sink.store, -1)
        if known >= sink.commit and store not in sink.former:
            sink.adopt(store, follows=True)
            self._changed().facts = self._facts()
            return True
        if store in sink.ancestors and sink.silent_us < LEFT_US:
            return False  # sent before the start of the present one
        if is_late or (sink.store and is_old):
            is_believed, why = False, TWO_STORES
        elif store in sink.former:
            is_believed, why = sink.silent_us >= LEFT_US, TWO_STORES
        else:
            is_believed, why = sink.believes_strangers, STRANGERS
        if sink.store and not is_believed:
            if not sink.contested_us:
                self._counters.note(f"sink: {why.format(sink.name)}")
            sink.contested_us = LEFT_US
            return False
        if sink.store:
            self._counters.note(MOVES)
            self._make_dirty(sink)
        sink.adopt(store)
        self._changed().facts = self._facts()
        return True

    def _make_dirty(self, sink: Sink) -> None:
        self._changed().make_dirty(sink.bit)
        self.unstored.make_dirty(sink.bit)
        self._dirtied |= sink.bit
        self.has_commits = True

    def take_dirtied(self) -> int:
        """Return the bits of the sinks for which everything became dirty since the last time."""
        taken, self._dirtied = self._dirtied, 0
        return taken

    def answer(self, answer: StoreWide) -> None:
        """Note a sink's answer on entries that may be in the store alone."""
        self._changed().answers.append(answer)
        self.unstored.answers.append(answer)

    def tick(self, now_us: int) -> bool:
        """Count silence, and forget a sink that was silent for long while another one answered.

        Returns:
            Whether a sink was forgotten.
        """
        before_us, self._tick_us = self._tick_us, now_us
        if before_us is None or now_us <= before_us:
            return False
        passed_us = min(now_us - before_us, LONGEST_TICK_US)
        for sink in self:
            sink.pass_time(passed_us)
        gone = [sink for sink in self if sink.silent_us >= self._forget_us]
        if not gone or min(sink.silent_us for sink in self) >= self._forget_us:
            return False
        for sink in gone:
            self._forget(sink)
        return True

    def _forget(self, sink: Sink) -> None:
        self._places[self._places.index(sink)] = None
        self._present = _present(self._places)
        self.has_commits = True
        self._changed().forget_sinks(sink.bit)
        self.unstored.forget_sinks(sink.bit)
        self._changed().facts = self._facts()
        self._counters.note(FORGOTTEN.format(sink.name))

    def _changed(self) -> Changes:
        """Return what is to be committed, to add to it; mostly there is nothing."""
        if self.changes is None:
            self.changes = Changes()
        return self.changes

    def take_commits(self) -> Facts:
        """Return the sinks, to be stored with what they took."""
        self.has_commits = False
        return self._facts()

    def take_notes(self) -> Changes | None:
        """Return how long the sinks are silent, where that has grown much; None elsewhere."""
        silences = self._silences()
        if len(silences) == len(self._kept_us) and all(
            abs(new - old) < SILENCE_KEPT_US
            for new, old in zip(silences, self._kept_us, strict=True)
        ):
            return None
        return Changes(facts=self._facts())

    def rows(self) -> tuple[SinkRow, ...]:
        """Return them as they are stored; the place of each is its bit."""
        return tuple([SinkRow("") if sink is None else sink.row() for sink in self._places])

    def _facts(self) -> Facts:
        self._kept_us = self._silences()
        return Facts(sinks=self.rows())

    def _silences(self) -> list[int]:
        return [0 if sink is None else sink.silent_us for sink in self._places]


def _present(places: list[Sink | None]) -> list[Sink]:
    return [sink for sink in places if sink is not None]


def _latest_named(frame: AckFrame) -> tuple[int, int, int]:
    """Return the latest entry that an answer names, by incarnation, nonce and seq."""
    every = [*frame.taken, *(seqs for _, seqs in frame.not_taken)]
    named = [(each.incarnation, each.nonce, each.runs[-1][1]) for each in every if each.runs]
    return max(named, default=(0, 0, 0))


def _bounded(frame: AckFrame, own_s: int) -> AckFrame:
    """Return an answer whose clock is not ahead of the device's own."""
    is_ahead = frame.clock_s is not None and frame.clock_s > own_s
    return replace(frame, clock_s=own_s) if is_ahead else frame
