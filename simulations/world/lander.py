"""The lander: a gateway's core over plain tables, and what has landed of shared variables.

What is accepted is joined when somebody looks, or when the lander commits: so the windows of one
commit are made once.
"""

from collections.abc import Iterable, Iterator

from crdts import Frontier, Lattice, Membership, Replica
from device_agent.gateway.alerts import FleetAlerts
from device_agent.gateway.core import GatewayCore, WaitingTerms
from lasp_edge.language.plan import Plan
from lasp_edge.protocol.acceptance import Acceptance, Accepted, PaneRows, Record, Refusal
from lasp_edge.protocol.acks import AckFrame, Answer
from lasp_edge.protocol.commands import CommandFrame
from lasp_edge.protocol.fencing import VouchFrame
from lasp_edge.protocol.frontier import Listening
from lasp_edge.protocol.greetings import Greetings
from lasp_edge.protocol.overheard import Overheard
from lasp_edge.protocol.sharing import SummaryFrame
from lasp_edge.protocol.sinks import DEFAULT_SINK
from lasp_edge.protocol.status import TENTATIVE
from lasp_edge.protocol.topics import Topics
from lasp_edge.protocol.window_rows import FleetRow
from lasp_edge.units import SECOND_US
from simulations.world.decoding import decoded
from simulations.world.keeper import SimulatedKeeper
from simulations.world.landed import LandedState

LANDER = Replica(1, 1, "lander")
"""Who acknowledges, unless a test says otherwise."""

TERMS = WaitingTerms(dead_after_us=20 * SECOND_US)
"""Twenty steps of silence, less than many faults last: then windows do not wait for the device."""


class _Acceptance(Acceptance):
    """The rules of the real lander; a frame that others receive, too, is decoded once."""

    decode = staticmethod(decoded)


class SimulatedLander(LandedState):
    """What has landed: the greatest version of each pane entry, and the windows made from them.

    Args:
        lake: the lake's id; devices send everything to another one again.
        plan: of the program whose windows it keeps.
        membership: the commands that the lake knows already.
        sink: under which name devices deliver to it.
        process: who acknowledges; a device tries a new process with what it has refused before.
        topics: of the fleet; None: it is called as its program.
        shared: what has landed of shared variables, by name.
        keeper: what an earlier process has kept.
        terms: for whom windows wait.
        remembered: what alerts of an earlier process remember.

    Attributes:
        process: see there; another one after a restart.
        refused: what was not taken, by topic and reason.
    """

    def __init__(  # noqa: PLR0913 - all but the first two have a default
        self,
        lake: str,
        plan: Plan,
        membership: Membership | None = None,
        sink: str = DEFAULT_SINK,
        process: Replica = LANDER,
        *,
        topics: Topics | None = None,
        shared: dict[str, Lattice] | None = None,
        keeper: SimulatedKeeper | None = None,
        terms: WaitingTerms = TERMS,
        remembered: str = "",
    ) -> None:
        self.process, self.plan, self._terms, self.file = process, plan, terms, lake
        self._sink = sink
        self._keeper = keeper or SimulatedKeeper(membership, terms.roster)
        self.commits_before = self._keeper.commits
        self.shared: dict[str, Lattice] = {} if shared is None else shared
        self.refused: dict[tuple[str, str], Refusal] = {}
        self._acceptance = _Acceptance(
            plan.sent_streams,
            plan.published_folds.values(),
            topics or Topics(plan.name),
            (sink, lake),
            membership=membership,
            overheard=overheard(plan, self.shared),
        )
        self._results = {result.stream for result in plan.stream_results.values()}
        self.core = GatewayCore(plan, self._acceptance, self._keeper, process, terms)
        self.alerts = FleetAlerts(plan, sink, lambda: self._acceptance.commands.control, remembered)
        self._pending = Accepted()
        self._since_us: int | None = None
        self._greetings = Greetings()
        self._acks_sent = 0

    def restarted(self, plan: Plan, process: Replica) -> "SimulatedLander":
        """Return the same lake under another process, with the same program or another one.

        It knows of devices and commands what was kept.
        """
        self.commit(None)
        after = SimulatedLander(
            *(self.lake, plan, None, self._sink, process),
            shared=self.shared,
            keeper=self._keeper,
            terms=self._terms,
            remembered=self.alerts.remembered(),
        )
        after.refused = self.refused
        if plan is self.plan:
            self._keeper.wrong += _other_windows(self.core, after.core)
        return after

    def commit(self, now_us: int | None) -> None:
        pending = self._pending
        if now_us is None and not (pending.rows or pending.promises.entries):
            return
        listening = None
        if now_us is not None and self._since_us is not None:
            listening = self.listening = Listening(now_us, self._since_us)
        pending, self._pending = self._pending, Accepted()
        changes = self.core.join(pending, listening).changes
        self._keeper.commit(changes)
        if any(row.status != TENTATIVE for row in self._unfinished()):
            self.restarted(self.plan, self.process)  # such rows are rare: it compares them
        self.alerts.take(changes.rows, self.core.fold_at)
        streams = self.core.streams
        if streams is not None:
            self.alerts.take_results(streams.take_final(), streams.newest())

    def _unfinished(self) -> Iterable[FleetRow]:
        """Return the rows of unfinished windows, where operators change windows."""
        return self.core.windows.unfinished.rows.values() if self.plan.parameters else ()

    def disconnected(self) -> None:
        """Note that nothing is heard: nobody's silence counts."""
        self._since_us = None

    def connected(self, now_us: int) -> None:
        """Note a new connection to the broker."""
        self._since_us = now_us
        self._acceptance.connected(now_us)

    def repeated(self, now_us: int) -> Iterator[CommandFrame]:
        """Yield the commands that are to be repeated."""
        return self._acceptance.repeated(self.process, now_us)

    def asks(self, now_us: int) -> Iterator[SummaryFrame]:
        """Yield what it asks devices for, of shared variables."""
        return self._acceptance.overheard.asks(self.process, now_us)

    def hear(
        self, topic: str, payload: bytes, now_us: int, *, retained: bool = False
    ) -> AckFrame | VouchFrame | None:
        """Take a message; return the answer to its sender.

        A device learns of this store where its beats do not name it, and else now and then.
        """
        accepted = self._acceptance.take([Record(now_us, topic, retained, payload)])
        self._land(accepted)
        for hello in accepted.hellos.values():
            self._acks_sent += 1
            return self._acceptance.witness.vouch(self.process, self._acks_sent, hello)
        for device in accepted.overtaken:
            self._acks_sent += 1
            return VouchFrame.hint(self.process, self._acks_sent, device)
        for device, answer in accepted.answers.items():
            return self._acknowledgement(device, answer, now_us)
        for device, is_ours in accepted.heard.items():
            if self._greetings.is_due(device, is_ours, now_us):
                return self._acknowledgement(device, Answer(), now_us)
        return None

    def _land(self, accepted: Accepted) -> None:
        self.refused |= accepted.refused
        for name, _, news, _ in accepted.shared:
            self.shared[name] = self.shared.get(name, news.bottom()) | news
        for rows in accepted.rows:
            if isinstance(rows, PaneRows) and rows.block.stream in self._results:
                self._keeper.keep(rows)
            else:
                self._pending.rows.append(rows)
        self._pending.promises |= accepted.promises
        newest = self._pending.promises.entries
        for device, promise in accepted.promises.entries.items():
            if newest[device].version == promise.version:
                self._pending.begun[device] = accepted.begun[device]
        self._pending.begun_before |= accepted.begun_before
        self._pending.unsent |= accepted.unsent
        for device in accepted.answers:
            self._pending.answers.setdefault(device, Answer())
        self._pending.known |= accepted.known
        self._pending.commands |= accepted.commands
        self._pending.owed_us |= accepted.owed_us
        if accepted.commands.control.entries:  # earlier promises spoke of another log
            self._pending.promises, self._pending.begun = Frontier(), {}
        self._pending.heard |= accepted.heard
        self._pending.hellos |= accepted.hellos

    def _acknowledgement(self, device: str, answer: Answer, now_us: int) -> AckFrame:
        self._acks_sent += 1
        head = (self.process, self._acks_sent, device, self._acceptance.sink)
        control = self._acceptance.control
        known = 0 if control is None else control.control
        (frame,) = answer.frames(*head, now_us // SECOND_US, known)
        return frame


def _other_windows(before: GatewayCore, after: GatewayCore) -> Iterator[str]:
    """Yield the windows that only a process, or only the next one, takes for unfinished."""
    known, found = before.windows.unfinished.rows, after.windows.unfinished.rows
    for at in sorted(known.keys() ^ found.keys()):
        which = "first" if at in known else "second"
        yield f"of two processes of a sink only the {which} one takes {at} for unfinished"


def overheard(plan: Plan, states: dict[str, Lattice]) -> Overheard:
    """Return the shared variables of a program, with what was heard of them before."""
    variables = {
        name: (plan.shared_streams[name], variable.bottom)
        for name, variable in plan.shared_variables.items()
        if variable.bottom is not None
    }
    return Overheard(variables, states)
