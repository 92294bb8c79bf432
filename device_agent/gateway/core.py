"""A gateway's core: messages in; rows, replies and results out.

No clock, no file and no broker is in it. A turn takes what came in and says what changes: pane
entries that came or grew, promises, commands, the frontier, and the rows of windows that differ
for it. Whoever runs the core makes that durable, and only then sends anything. Where that fails the
core is thrown away, and a new one starts with what is kept.

It accepts what a lander accepts (`lasp_edge.protocol.acceptance`), and its frontier, its statuses
and its combinations are those of the job in Spark. What concerns variables is taken and not kept:
every device holds the fleet's values itself.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from crdts import Membership, Replica
from crdts.frontier import BOTTOM_US, Promise
from device_agent.gateway.finality import (
    EVERY_END,
    TurnFinality,
    begun_after,
    lacking_stretches,
    passed_of,
    served_by,
    was_left_out,
)
from device_agent.gateway.kept import FleetChanges, FleetKeeper, FleetState
from device_agent.gateway.panes import FleetPanes
from device_agent.gateway.windows import FleetWindows
from lasp_edge.folds.fold import Fold
from lasp_edge.language.declarations import Window
from lasp_edge.language.fleet_regimes import FleetRegimes
from lasp_edge.language.plan import Plan
from lasp_edge.protocol.acceptance import Acceptance, Accepted, PaneRows, Record
from lasp_edge.protocol.acks import FormerStore
from lasp_edge.protocol.frontier import (
    Coverage,
    Listening,
    Liveness,
    Tick,
    advance,
    awaited,
    caught_up,
    is_listening,
)
from lasp_edge.protocol.lost_stores import earlier_after, earlier_of, lost_after, unvoided
from lasp_edge.protocol.owed import owed_after
from lasp_edge.protocol.replies import Replies
from lasp_edge.protocol.sinks import store_tag
from lasp_edge.protocol.waiting import (
    DEAD_AFTER_US,
    Step,
    WindowWaiting,
    listen_us,
    steps_of,
    waits_of,
)
from lasp_edge.units import SECOND_US

if TYPE_CHECKING:
    from device_agent.gateway.streams import FleetStreams

PRUNE_EVERY_US: Final = 3_600 * SECOND_US
"""How far the frontier moves between two times that what is of no use any more is forgotten."""


class WaitingTerms(NamedTuple):
    """For whom windows wait, and for how long anything is kept.

    Attributes:
        roster: the devices that are expected; None for whichever were heard.
        dead_after_us: a device that is silent for longer is not waited for.
        retain_us: for how long after its end a window takes late readings.
        history_us: for how long after its end a window's rows are kept; at least `retain_us`.
        tentative_after_us: X of windows that have none of their own: for how long they wait for
            devices before they have a row (`lasp_edge.protocol.waiting`).
    """

    roster: Collection[str] | None = None
    dead_after_us: int = DEAD_AFTER_US
    retain_us: int = 7 * 86_400 * SECOND_US
    history_us: int = 31 * 86_400 * SECOND_US
    tentative_after_us: int = 0


class GatewayTurn(NamedTuple):
    """The outcome of some messages.

    Attributes:
        changes: are to be made durable before anything is sent.
        accepted: for whom an answer is owed then.
        coverage: how far results are final, and over whom.
        too_late: how many pane entries came too late for a window of theirs.
    """

    changes: FleetChanges
    accepted: Accepted
    coverage: Coverage
    too_late: int


class GatewayCore:
    """One gateway's state machine.

    Args:
        plan: the program whose windows it keeps.
        acceptance: what is taken from messages; it knows the member commands that are kept.
        keeper: keeps the state; the core only reads from it.
        sender: this process, as the devices see it.
        terms: for whom windows wait.
        former: the stores from which the one that is kept follows.

    Attributes:
        replies: what is owed to devices.
        elsewhere: the devices that deliver to another gateway of this name (`Acceptance`).
        coverage: how far results are final, and over whom.
        waiting: since when windows wait.
        windows: of the program.
        streams: of the program, in one order over the fleet; None where there is no such stream.
    """

    def __init__(
        self,
        plan: Plan,
        acceptance: Acceptance,
        keeper: FleetKeeper,
        sender: Replica,
        terms: WaitingTerms,
        former: tuple[FormerStore, ...] = (),
    ) -> None:
        state = self._state = keeper.restored()
        self._acceptance, self._terms, self.elsewhere = acceptance, terms, acceptance.elsewhere
        self.replies = Replies(acceptance, sender, former)
        acceptance.ancestors = frozenset(store_tag(each.store) for each in former)
        acceptance.membership |= state.membership
        acceptance.witness.read(state.witnessed.values())
        self._liveness = Liveness(
            state.promises, {}, acceptance.membership, furthest_us=state.furthest
        )
        self.coverage = advance(state.frontier_us, self._liveness, *terms[:2])
        self._regimes = FleetRegimes(plan, state.control)
        if plan.parameters:
            acceptance.control = self._regimes
        self._panes = FleetPanes(self._regimes, keeper)
        every = plan.windows.values()
        waits = waits_of(every, terms.tentative_after_us)
        self._listen_us = listen_us(waits, terms.dead_after_us)
        steps = steps_of(state.promises.entries.values())
        of_order = [terms.tentative_after_us] if plan.fleet_streams else []
        self.waiting = WindowWaiting.of([*waits.values(), *of_order]).joined(
            [*state.steps, *steps], None
        )
        self._served, self._ticks, self._begun = served_by(plan), 0, state.begun
        self._lost, self._owed = state.lost, state.owed
        self._earlier = earlier_of(state.promises.entries, state.earlier)
        until = (passed_of(state, every, terms.retain_us), terms.retain_us, waits)
        self.windows = FleetWindows(self._regimes, self._panes, keeper, state.held, *until)
        self.windows.promised(steps, None)
        self.streams = _streams(plan, keeper, terms)

    @property
    def membership(self) -> Membership:
        """All member commands that were taken."""
        return self._acceptance.membership

    @property
    def promises(self) -> dict[str, Promise]:
        """The newest low watermark of each device."""
        return self._liveness.promises.entries

    def fold_at(self, window: Window, start_us: int) -> Fold:
        """Return the fold of the windows that start at a time."""
        return self._regimes.of(window.name).form_at(start_us).fold

    def take(self, records: Iterable[Record], listening: Listening | None) -> GatewayTurn:
        """Take messages in, and return what comes of them.

        Args:
            records: in the order in which they came.
            listening: the clock, and since when it listens; None while there is no broker: then
                nobody's silence is counted.
        """
        return self.join(self._acceptance.take(records), listening)

    def join(self, accepted: Accepted, listening: Listening | None) -> GatewayTurn:
        """Join accepted entries and promises, and return the turn; see `take`."""
        before, before_us, changes = self._state, self.coverage.frontier, FleetChanges()
        is_back = was_left_out(before, self._served)
        if accepted.commands.control.entries:
            # A promise is under one log, so all are void.
            self.windows.log_changed(self._regimes.take_touched(), before_us)
            self._liveness = self._liveness.voided()
        too_late = self._join_panes(accepted, changes, before_us)
        before_liveness = self._liveness
        steps = self._join_liveness(accepted, listening)
        terms = (self._liveness, self._terms.roster, self._terms.dead_after_us)
        self.coverage = advance(before_us, *terms, self._listen_us)
        members = self._liveness.membership
        self._owed = owed_after(self._owed, members, accepted.owed_us, before_us)
        self._join_waiting(steps, before_us)
        finality = TurnFinality(
            self.coverage,
            self.waiting,
            partial(awaited, *terms),
            self._promised(),
            self._begun,
            unvoided(self._liveness),
            EVERY_END
            if is_back
            else caught_up(
                *(before_liveness, self._liveness, *self._terms[:2]),
                before_us if self.streams is None else self.streams.passed_us(before_us),
            ),
            lacking_stretches(
                *(self._lost, {} if is_back else before.lost, self._owed, self.coverage.expected),
                *(self._liveness, self._earlier, (before.begun, self._begun)),
            ),
        )
        changes.rows += self.windows.revisions(changes.entries, before_us, finality)
        if self.streams is not None:
            self._advance(self.streams, changes, listening, finality)
        self._state = self._state_after(accepted)
        if self._state != before:
            changes.state = self._state
        self._prune(changes, before_us)
        self._panes.forget()
        return GatewayTurn(changes, accepted, self.coverage, too_late)

    def _advance(
        self,
        streams: "FleetStreams",
        changes: FleetChanges,
        listening: Listening | None,
        finality: TurnFinality,
    ) -> None:
        """Evaluate the streams over the fleet."""
        if listening is not None:
            streams.parted.least = max(1, listening.now_us // SECOND_US)
        terms = streams.terms(self.promises, finality, self._terms.tentative_after_us)
        streams.advance(self.coverage.frontier, changes, terms)

    def _state_after(self, accepted: Accepted) -> FleetState:
        """Return the state after a turn; what was not touched is the same object as before."""
        before, commands = self._state, accepted.commands
        frontier_us, known = self.coverage.frontier, self._acceptance
        members, log = before.membership, before.control
        return FleetState(
            frontier_us,
            self._liveness.promises,
            known.membership.copy() if commands.membership.entries else members,
            self._witnessed(),
            self.waiting.steps,
            self._regimes.log.copy() if commands.control.entries else log,
            self.windows.held.spans,
            before.served if frontier_us is None else self._served,
            self._begun,
            self._lost,
            self._owed,
            self._earlier,
            self._liveness.furthest_us,
        )

    def _witnessed(self) -> Mapping[str, str]:
        """Return the line of the witness on each device, after those of which it knows more."""
        known, witness = self._state.witnessed, self._acceptance.witness
        lines = {device: witness.line(device) for device in sorted(witness.changed)}
        witness.changed.clear()
        changed = {d: line for d, line in lines.items() if line and known.get(d) != line}
        return {**known, **changed} if changed else known

    def _promised(self) -> int | None:
        """Return how far all that are waited for have promised under the present log.

        None where that is nowhere, and where no window is held until then.
        """
        if not self.windows.held.spans:
            return None
        terms = (self._terms.roster, self._terms.dead_after_us)
        return advance(BOTTOM_US, self._liveness, *terms, self._listen_us).frontier

    def _join_panes(self, accepted: Accepted, changes: FleetChanges, before_us: int | None) -> int:
        """Join the accepted entries, and return how many came too late for a window of theirs."""
        late = 0
        for rows in accepted.rows:
            # Variables, and rows of results, are kept by their devices.
            if not isinstance(rows, PaneRows):
                continue
            if self._regimes.window_of(rows.block.stream):
                entries, missed = self.windows.take_entries(rows, before_us)
                changes.entries += entries
                late += missed
            elif self.streams is not None and self.streams.has(rows.block.stream):
                late += self.streams.take_entries(rows, before_us)
        return late

    def _join_liveness(self, accepted: Accepted, listening: Listening | None) -> list[Step]:
        """Join promises and the clock, and return the steps of the promises that are new."""
        before = self._liveness
        promises, ticks, furthest_us = before.promises, before.ticks, before.furthest_us
        if accepted.promises.entries:
            promises = promises | accepted.promises
            furthest_us = before.furthest_with(promises, accepted.promises.entries)
        if listening is not None:
            self._ticks += 1
            ticks = {"": Tick(self._ticks, listening)}
        members = self._acceptance.membership
        host_us = None if listening is None else listening.now_us
        self._liveness = Liveness(promises, ticks, members, before.former_us, host_us, furthest_us)
        known, found = before.promises.entries, promises.entries
        came, before_us = accepted.promises.entries, self.coverage.frontier
        self._earlier = earlier_after(self._earlier, before, came, before_us)
        self._lost = lost_after(self._lost, accepted.begun, self._earlier)
        self._begun = begun_after(self._begun, accepted, found)
        return steps_of(found[d] for d in accepted.promises.entries if found[d] != known.get(d))

    def _join_waiting(self, steps: list[Step], before_us: int | None) -> None:
        """Join since when windows wait; while F cannot move yet, nobody is late."""
        listening, roster = self._liveness.listening, self._terms.roster
        is_first = is_listening(before_us, self._liveness, roster, self._listen_us)
        now_us = None if listening is None or is_first else listening.now_us
        self.waiting = self.waiting.joined(steps, now_us)
        self.windows.promised(steps, now_us)

    @property
    def listening(self) -> Listening | None:
        """The clock by which silence was counted last; None before the first turn."""
        return self._liveness.listening

    @property
    def holding(self) -> dict[str, str]:
        """Who holds the frontier, and which of its sources is silent; "" for none."""
        terms, sources = (self._terms.roster, self._terms.dead_after_us), self._acceptance.held_by
        waits, away = awaited(self._liveness, *terms), self._acceptance.away
        silent = [d for d, *_ in waits.devices if d in away or sources.get(d)]
        return {name: sources.get(name, "") for name in (*waits.far_behind, *silent)}

    @property
    def listens_until_us(self) -> int | None:
        """Until when every device has time to speak, and nothing is final; None: that is over."""
        listening, before_us = self._liveness.listening, self.coverage.frontier
        waits = is_listening(before_us, self._liveness, self._terms.roster, self._listen_us)
        return listening.since_us + self._listen_us if waits and listening else None

    @property
    def shortens_listening(self) -> tuple[str, ...]:
        """The options, as far as they were not given, with which it listens for less long."""
        given = (
            ("--roster", self._terms.roster is not None),
            ("--tentative-after", self._terms.tentative_after_us > 0),
        )
        return tuple(option for option, is_given in given if not is_given)

    @property
    def failed(self) -> Counter[str]:
        """How often a function of the user's own raised something, by reason."""
        streams = self.streams.failed if self.streams is not None else Counter[str]()
        return self.windows.failed + streams

    @property
    def due_at_us(self) -> int | None:
        """When the next window without a row will be due; None where that is not known."""
        return self.windows.unfinished.due_at_us(self.waiting)

    def _prune(self, changes: FleetChanges, before_us: int | None) -> None:
        """Forget what is of no use any more, now and then."""
        frontier_us = self.coverage.frontier
        if frontier_us is None or before_us is None:
            return
        if frontier_us // PRUNE_EVERY_US == before_us // PRUNE_EVERY_US:
            return
        floors = self.windows.panes_below(frontier_us)
        longest_us = max(
            (w.longest_us for w in map(self._regimes.of, self._regimes.windows)), default=0
        )
        items_us = {} if self.streams is None else self.streams.needed_from_us(frontier_us)
        least_us = frontier_us - self._terms.retain_us - longest_us
        changes.others_below = min([least_us, *floors.values(), *items_us.values()])
        changes.panes_below = {**floors, **items_us}
        kept_us = max(self._terms.history_us, self._terms.retain_us) + longest_us
        changes.rows_below = frontier_us - kept_us


def _streams(plan: Plan, keeper: FleetKeeper, terms: WaitingTerms) -> "FleetStreams | None":
    """Return the streams over the fleet; without any a gateway does without the modules."""
    if not plan.fleet_streams:
        return None
    from device_agent.gateway.streams import FleetStreams  # noqa: PLC0415 - see above

    return FleetStreams(plan, keeper, terms.retain_us)
