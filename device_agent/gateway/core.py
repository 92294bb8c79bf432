"""A gateway's core: messages in; rows, and what is to be told to devices, out.

No clock, no file and no broker is in it. A turn takes what came in and says what changes: pane
entries that came or grew, promises, commands, the frontier, and the rows of windows that differ
for it. Whoever runs the core makes that durable, and only then sends anything. Where that fails the
core is thrown away, and a new one starts with what is kept.

It accepts what a lander accepts (`lasp_edge.protocol.acceptance`), and its frontier, its statuses
and its combinations are those of the job in Spark. What concerns variables is taken and not kept:
every device holds the fleet's values itself.
"""

from collections import Counter
from collections.abc import Collection, Iterable
from functools import partial
from typing import Final, NamedTuple

from crdts import Membership, Replica
from crdts.frontier import BOTTOM_US, Promise
from device_agent.gateway.finality import FinalWindows, TurnFinality, served_by
from device_agent.gateway.kept import FleetChanges, FleetKeeper
from device_agent.gateway.panes import FleetPanes
from device_agent.gateway.windows import FleetWindows
from lasp_edge.folds.fold import Fold
from lasp_edge.language.declarations import Window
from lasp_edge.language.fleet_regimes import FleetRegimes
from lasp_edge.language.plan import Plan
from lasp_edge.protocol.acceptance import (
    Acceptance,
    Accepted,
    PaneRows,
    Record,
)
from lasp_edge.protocol.frontier import (
    Coverage,
    Listening,
    Liveness,
    Tick,
    advance,
    awaited,
    is_listening,
)
from lasp_edge.protocol.replies import Replies
from lasp_edge.protocol.waiting import DEAD_AFTER_US, WindowWaiting, listen_us, steps_of, waits_of
from lasp_edge.units import SECOND_US

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
    """What came of some messages.

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

    Attributes:
        replies: what is owed to devices.
        coverage: how far results are final, and over whom.
        waiting: since when windows wait.
        windows: of the program.
    """

    def __init__(
        self,
        plan: Plan,
        acceptance: Acceptance,
        keeper: FleetKeeper,
        sender: Replica,
        terms: WaitingTerms,
    ) -> None:
        kept = keeper.restored()
        self._acceptance, self._terms = acceptance, terms
        self.replies = Replies(acceptance, sender)
        acceptance.membership |= kept.membership
        acceptance.witness.read(kept.heard)
        self._liveness = Liveness(kept.promises, {}, acceptance.membership)
        self.coverage = Coverage(kept.frontier_us, tuple(sorted(kept.promises.entries)), ())
        self._regimes = FleetRegimes(plan, kept.control)
        if plan.parameters:
            acceptance.control = self._regimes
        self._panes = FleetPanes(self._regimes, keeper)
        waits = waits_of(plan.windows.values(), terms.tentative_after_us)
        self._listen_us = listen_us(waits, terms.dead_after_us)
        steps = [*kept.steps, *steps_of(kept.promises.entries.values())]
        self.waiting = WindowWaiting.of(waits.values()).joined(steps, None)
        self._kept_steps = frozenset(kept.steps)
        self._served, self._kept_served = served_by(plan.windows.values()), kept.served
        final = FinalWindows.of(kept, plan.windows.values())
        until = (kept.held, final, terms.retain_us, waits)
        self.windows = FleetWindows(self._regimes, self._panes, keeper, *until)
        self.windows.promised(steps_of(kept.promises.entries.values()), None)
        self._heard: dict[str, str] = {}
        self._ticks = 0

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
        """Join what was accepted, and return what comes of it; see `take`."""
        changes, before_us = FleetChanges(), self.coverage.frontier
        held = self.windows.held.spans
        self._hear(accepted, changes, before_us)
        too_late = self._join_panes(accepted, changes, before_us)
        self._join_liveness(accepted, changes, listening)
        terms = (self._liveness, self._terms.roster, self._terms.dead_after_us)
        self.coverage = advance(before_us, *terms, self._listen_us)
        self._join_waiting(changes, before_us)
        frontier_us = self.coverage.frontier
        finality = TurnFinality(
            self.coverage, self.waiting, partial(awaited, *terms), self._promised()
        )
        changes.rows += self.windows.revisions(changes.entries, before_us, finality)
        if changes.control is not None or self.windows.held.spans != held:
            changes.held = self.windows.held.spans
        if frontier_us != before_us:
            changes.frontier_us = frontier_us
            changes.served = None if self._served == self._kept_served else self._served
            self._kept_served = self._served
            self._prune(changes, before_us)
        self._panes.forget()
        return GatewayTurn(changes, accepted, self.coverage, too_late)

    def _hear(self, accepted: Accepted, changes: FleetChanges, before_us: int | None) -> None:
        """Take entries of the log of parameters: a promise is under one log, so all are void."""
        if accepted.commands.control.entries:
            changes.control = self._regimes.log.copy()
            self.windows.log_changed(self._regimes.take_touched(), before_us)
            self._liveness = self._liveness.voided()
            changes.promises |= self._liveness.promises.entries

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
            if isinstance(rows, PaneRows) and self._regimes.window_of(rows.block.stream):
                entries, missed = self.windows.take_entries(rows, before_us)
                changes.entries += entries
                late += missed
        return late

    def _join_liveness(
        self, accepted: Accepted, changes: FleetChanges, listening: Listening | None
    ) -> None:
        promises, came = self._liveness.promises, accepted.promises.entries
        if came:
            known, promises = promises.entries, promises | accepted.promises
            changes.promises |= {
                device: promises.entries[device]
                for device in came
                if known.get(device) != promises.entries[device]
            }
        changes.members = dict(accepted.commands.membership.entries)
        ticks = self._liveness.ticks
        if listening is not None:
            self._ticks += 1
            ticks = {"": Tick(self._ticks, listening)}
        members = self._acceptance.membership
        self._liveness = Liveness(promises, ticks, members, self._liveness.former_us)
        heard = {*accepted.heard, *accepted.answers, *accepted.known}
        heard.update(about for _, about in accepted.hellos)
        for device in sorted(heard):
            line = self._acceptance.witness.line(device)
            if line is not None and self._heard.get(device) != line:
                self._heard[device] = changes.heard[device] = line

    def _join_waiting(self, changes: FleetChanges, before_us: int | None) -> None:
        """Join since when windows wait; while F cannot move yet, nobody is late."""
        listening, roster = self._liveness.listening, self._terms.roster
        is_first = is_listening(before_us, self._liveness, roster, self._listen_us)
        now_us = None if listening is None or is_first else listening.now_us
        before = self.waiting
        steps = steps_of(changes.promises.values())
        self.waiting = before.joined(steps, now_us)
        self.windows.promised(steps, now_us)
        if self.waiting.stairs != before.stairs:
            known = self.waiting.steps
            changes.steps, changes.steps_gone = known - self._kept_steps, self._kept_steps - known
            self._kept_steps = known

    @property
    def failed(self) -> Counter[str]:
        """How often a fold of the user's own raised something, by reason."""
        return self.windows.failed

    @property
    def due_at_us(self) -> int | None:
        """When the next window without a row will be due; None where that is not known."""
        return self.windows.unfinished.due_at_us(self.waiting)

    def _prune(self, changes: FleetChanges, before_us: int | None) -> None:
        """Forget what is of no use any more, now and then."""
        frontier_us = changes.frontier_us
        if frontier_us is None or before_us is None:
            return
        if frontier_us // PRUNE_EVERY_US == before_us // PRUNE_EVERY_US:
            return
        floors = self.windows.panes_below(frontier_us)
        longest_us = max(
            (w.longest_us for w in map(self._regimes.of, self._regimes.windows)), default=0
        )
        changes.panes_below = floors
        changes.others_below = min(
            [frontier_us - self._terms.retain_us - longest_us, *floors.values()]
        )
        kept_us = max(self._terms.history_us, self._terms.retain_us) + longest_us
        changes.rows_below = frontier_us - kept_us
