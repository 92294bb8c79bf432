"""The parts of one agent: how they are made, and the order in which they are called.

Some need others to be there, so this is the order in which they are made, too. A device does
without the modules of what its program has not: streams, windows that are not plain, and Home
Assistant.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from crdts import ControlLog, Replica
from device_agent.agent.acting.acting import Acting
from device_agent.agent.agent import Agent
from device_agent.agent.changes import Restored
from device_agent.agent.fleet.absences import Absences
from device_agent.agent.fleet.agreement import Agreements
from device_agent.agent.fleet.beats import Beats
from device_agent.agent.fleet.commands import OperatorCommands
from device_agent.agent.fleet.exchange import Exchange
from device_agent.agent.fleet.fence import Fence, FenceState
from device_agent.agent.fleet.programs import Programs
from device_agent.agent.fleet.results import Results
from device_agent.agent.fleet.shown import ShownTopics
from device_agent.agent.fleet.values import Values
from device_agent.agent.fleet.voice import FleetVoice
from device_agent.agent.fleet.witnessing import Witnessing
from device_agent.agent.intake.intake import Intake
from device_agent.agent.intake.peer_reports import KnownProgress
from device_agent.agent.intake.progress import SourceProgress
from device_agent.agent.panes.cache import PaneCache
from device_agent.agent.panes.delivery import PaneDelivery
from device_agent.agent.panes.panes import Panes
from device_agent.agent.panes.sinks import Sinks
from device_agent.agent.parts import Part
from device_agent.agent.timing.timing import Timing
from device_agent.agent.timing.waiting import Waiting
from device_agent.agent.variables.derived import Derived
from device_agent.agent.variables.samples import Samples
from device_agent.agent.variables.sharing import Sharing
from device_agent.agent.variables.variables import Reactions, Variables
from lasp_edge.language.acting import FoldValue
from lasp_edge.protocol.sinks import LEFT_US

if TYPE_CHECKING:
    from device_agent.agent.rebuilding.missing import MissingPanes
    from device_agent.agent.rebuilding.renewed import RenewedWindows
    from device_agent.agent.scans.leaving import LeavingItems
    from device_agent.agent.scans.shares import Shares
    from device_agent.agent.scans.streams import Streams


class AgentParts:
    """All parts of one agent.

    Args:
        agent: what all parts share.
        restored: what the store held.
        succeed: lets all parts go on as a later replica of this device.
        is_connected: returns whether there is a connection to the broker.

    Attributes:
        agent: what all parts share.
        shares: takes what gateways publish of scans with local events; None without any.
        streams: runs the program's streams of a device; None where it declares no such stream.
        leaving: sends readings for streams over the fleet; None where there is no such stream.
        missing: makes the panes of windows that are not plain, if there are any.
        renewed: completes the panes of windows that a former program did not have, if any.
    """

    def __init__(
        self,
        agent: Agent,
        restored: Restored,
        succeed: Callable[[Replica], None],
        is_connected: Callable[[], bool],
    ) -> None:
        self.agent, self._is_connected = agent, is_connected
        self.derived = Derived(agent)
        self.samples = Samples(agent)
        self.variables = Variables(agent, self.samples, self.derived)
        sinks = Sinks(agent.facts.sinks, max(agent.settings.retain_us, LEFT_US), agent.counters)
        memory = Panes(agent, sinks)
        cache = PaneCache(memory, sinks)
        late = agent.settings.lateness_us, agent.settings.source_silent_us
        sources = SourceProgress(restored.sources, *late)
        known = KnownProgress(agent, restored)
        self.fence = Fence(agent, restored, known, succeed)
        self.witnessing = Witnessing(agent, self.fence)
        self.timing = Timing(agent)
        self.waiting = Waiting(agent, self.timing, sources, self.fence, restored.waiting)
        found = (agent, restored, sources, known, memory, self.variables, self.waiting)
        self.intake = Intake(*found, self._value_of)
        self.shown = ShownTopics(agent, is_connected)
        self.streams = self._made_streams(memory)
        self.leaving = _leaving(agent, self.intake, memory)
        self.missing = _missing(agent, self.intake, memory, cache)
        self.renewed = _renewed(agent, restored, self.intake, memory)
        self.commands = OperatorCommands(agent, self.samples.set_membership, self._followers())
        asked = (self._low_us, self.fence.source_highs, self.commands)
        self.panes = PaneDelivery(agent, memory, sinks, cache, sources, *asked)
        self._make_exchange()

    def _followers(self) -> list[Callable[[ControlLog], None]]:
        """Return what follows the operators' entries; panes are planned before streams make any."""
        if self.missing is None:
            return []
        found: list[Callable[[ControlLog], None]] = [self.missing.follow, self.samples.hear]
        if self.streams is not None:
            self.streams.panes.leaves_out = self.missing.leaves_out
            found.append(self.streams.follow)
        return found

    def _made_streams(self, memory: Panes) -> "Streams | None":
        """Return the part that runs streams; without any a device does without the modules."""
        self.shares = _shares(self.agent, self._is_asking)
        if not self.agent.plan.evaluated_events:
            return None
        from device_agent.agent.scans.streams import Streams  # noqa: PLC0415 - see above

        given = (self.intake, memory, self.variables, self._value_of, self.shares)
        return Streams(self.agent, *given, self.shown.of("streams"))

    def _is_asking(self) -> bool:
        """Return whether it is not known yet what former lives of this device had."""
        fence = self.fence
        if fence.state is FenceState.NOT_ASKED:
            return False
        # An answer waits while no clock is trusted.
        return fence.closed or not fence.answered_by or bool(self.intake.peer_reports.waiting)

    def _make_exchange(self) -> None:
        """Make the parts that exchange values with other devices, and act on them."""
        agent = self.agent
        self.sharing = Sharing(agent, self.variables.shared_states)
        self.exchange = Exchange(agent, self.samples.published.values(), self.sharing.reports)
        self.agreements = Agreements(agent, self.exchange, self.commands)
        sent = (self.exchange, self.intake, self.panes, self.fence, self.commands)
        self.beats = Beats(agent, *sent, self.builds_panes, self.shares)
        self.programs = Programs(agent, self.commands)
        values, shown = Values(agent, self.samples, self.agreements, self.derived), self.shown.of
        given = self.programs, shown("results"), self.beats.note_alarms
        self.results = Results(agent, values, *given)
        self.voice = FleetVoice(agent, values, self.agreements, self.commands, shown("voice"))
        known = (self.samples, self.variables, self.agreements)
        self.acting = Acting(agent, *known, self.commands, self._is_connected, self.streams)

    def in_order(self) -> list[Part]:
        """Return the parts in the order in which they are called."""
        agent = self.agent
        is_absence_noted = any(fold.absence for fold in agent.plan.dynamic_folds.values())
        return [
            self.fence,  # may let all others go on as another replica; all wait for it
            self.witnessing,
            self.timing,  # knows what time it is, for all others
            self.waiting,
            self.intake,  # joins what was read, so that all others see it
            *(
                part
                for part in (self.shares, self.streams, self.leaving, self.missing, self.renewed)
                if part is not None
            ),
            self.variables,
            *([Reactions(agent, self.derived, self.variables)] if agent.plan.followed else []),
            self.samples,
            self.sharing,
            self.exchange,  # entries are published before the beat that speaks of them
            self.panes,
            self.beats,
            self.results,
            self.voice,
            *_home_assistant(agent, self.voice, self.commands, self.streams),
            self.agreements,
            *([Absences(agent, self.samples, self._is_connected)] if is_absence_noted else []),
            self.commands,
            self.programs,
            *self.acting.parts,
            agent.notices,
            self.shown,
            agent.stored,  # has what those before it changed
            agent.counters,
        ]

    def _value_of(self, name: str, key: str) -> FoldValue | None:
        """Return what a key of a fold is worth now, for handlers that ask."""
        return self.acting.values.known(name, key)

    def _low_us(self, now_us: int) -> int | None:
        """Return the time before which nothing more comes: of no source, stream or pane."""
        low_us = self.intake.low_us(now_us)
        if self.streams is not None:
            low_us = self.streams.bounded_us(low_us, now_us)
        for part in (self.missing, self.renewed):
            low_us = low_us if part is None else part.bounded_us(low_us)
        return low_us

    def builds_panes(self) -> bool:
        """Return whether panes are still to be built."""
        parts = (self.streams, self.missing, self.renewed)
        if self.streams is not None and self.streams.engine.waiting.first_us is not None:
            return True
        return any(part is not None and part.waits for part in parts)


def _shares(agent: Agent, is_asking: Callable[[], bool]) -> "Shares | None":
    """Return the part that takes shares; without local events a device does without the modules."""
    if not any(each.local for each in agent.plan.streams.values()):
        return None
    from device_agent.agent.scans.shares import Shares  # noqa: PLC0415 - see above

    return Shares(agent.plan, is_asking)


def _leaving(agent: Agent, intake: Intake, memory: Panes) -> "LeavingItems | None":
    """Return the part that sends readings as they are, where an order over the fleet needs some."""
    if not agent.plan.item_streams:
        return None
    from device_agent.agent.scans.leaving import LeavingItems  # noqa: PLC0415 - see above

    return LeavingItems(agent, intake, memory)


def _missing(
    agent: Agent, intake: Intake, memory: Panes, cache: PaneCache
) -> "MissingPanes | None":
    """Return the part of windows that are not plain, and of parameters, where there are any."""
    plan = agent.plan
    if not plan.parameters and not plan.windows_of_readings:
        return None
    from device_agent.agent.rebuilding.missing import MissingPanes  # noqa: PLC0415 - see above

    return MissingPanes(agent, intake, memory, cache)


def _home_assistant(
    agent: Agent, voice: FleetVoice, commands: OperatorCommands, streams: "Streams | None"
) -> list[Part]:
    """Return the part for Home Assistant; without one a device does without the module."""
    if not agent.settings.home_assistant:
        return []
    from device_agent.agent.fleet.home_assistant import HomeAssistant  # noqa: PLC0415 - see above

    return [HomeAssistant(agent, voice, commands, streams.shown if streams else tuple)]


def _renewed(
    agent: Agent, restored: Restored, intake: Intake, memory: Panes
) -> "RenewedWindows | None":
    """Return the part of windows that a former program did not have, where there are any."""
    known = agent.facts.streams
    changed = known is not None and {w.stream for w in agent.plan.windows.values()} - set(known)
    if not (changed or agent.facts.begun):
        return None
    from device_agent.agent.rebuilding.renewed import RenewedWindows  # noqa: PLC0415 - see above

    return RenewedWindows(agent, restored, intake, memory)
