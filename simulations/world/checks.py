"""What must hold in every world: at each publication, after each step, and at the end.

- no dot names two things, and a frozen entry is never continued
- a promise never passes what has not landed (`promise_checks`)
- `settled` never lies: each device that is not excepted has reported what is held here; and what
  is remembered of that is what follows from what is known
- what a device does not hold for a sink any more has landed there
- states only grow, as long as a process lives
- what was in flight is sent again over a new connection; what was acknowledged is not in flight
- at the end all devices hold the same bytes, what landed is the truth, and nobody speaks but beats
- each sink's windows are what its panes give, final at most once (`window_checks`), and as far as
  promises let them be (`frontier_checks`): at the end, and wherever its process ended
- nothing is lost or doubled but what is counted (`too_late`, `doubtful`, `refused`, ..), and what
  no store can know of any more (`unreported`)
"""

from collections import Counter, defaultdict
from hashlib import sha256
from typing import Any

from crdts import Replica, Version
from device_agent.agent.panes.flights import MOST_IN_FLIGHT
from device_agent.agent.panes.sink import Sink
from lasp_edge.aggregates.fleet import counting
from lasp_edge.protocol.frames import BeatFrame, PaneFrame, VariableFrame
from lasp_edge.protocol.publication import Publication
from simulations.world.acting import ActingChecks
from simulations.world.age_checks import check_ages
from simulations.world.answer_checks import unanswered
from simulations.world.beat_checks import ceased, hasty, unowed
from simulations.world.broker import NOWHERE
from simulations.world.clock_checks import ClockChecks
from simulations.world.counted_checks import miscounted
from simulations.world.decoding import decoded
from simulations.world.delivery_checks import check_connection, check_delivery, check_sinks
from simulations.world.device import VirtualDevice
from simulations.world.fleet_scanning import FleetOrderChecks, check_items
from simulations.world.frontier_checks import FrontierWatch, unfinished
from simulations.world.gateway import VirtualGateway
from simulations.world.kept_checks import forgotten
from simulations.world.keyed_acts import KeyedActs
from simulations.world.landed_checks import check_landed, check_own_samples, check_shared, misdated
from simulations.world.log_checks import LogWatch
from simulations.world.lost_checks import unnamed
from simulations.world.noted_checks import wrong_notes
from simulations.world.operated_checks import wrong_operated
from simulations.world.peer_checks import not_expired
from simulations.world.process_checks import (
    check_clock,
    check_clocks_at_rest,
    check_process,
    check_quiet,
    check_reading,
)
from simulations.world.promise_checks import (
    check_done,
    check_highs,
    check_landed_since,
    check_promise,
    check_silence,
    check_waiting,
)
from simulations.world.reported_checks import retired_unsaid
from simulations.world.results_checks import wrong_results
from simulations.world.scanning import ScanChecks
from simulations.world.sinks import AnySink
from simulations.world.trace_checks import check_traces, kept_for_others, unstored
from simulations.world.truth import has_closed
from simulations.world.value_checks import ValueChecks, level_of, wrong_alerts
from simulations.world.window_checks import wrong_windows
from simulations.world.world import World

KEPT_NAMES = 260
"""Counters of a device, at most: the bound of `device_agent.agent.state.counters`, and its
groups."""


class Checks:
    """Looks at a run. What it finds goes to the world's `trouble`.

    Attributes:
        trace: a hash of everything that was published, in order.
        quiet: from now on only beats may be published.
        beats: how many each device has published since then.
        acting: looks at what devices do with their values.
    """

    def __init__(self) -> None:
        self.trace = sha256()
        self.quiet, self.beats = False, Counter[VirtualDevice]()
        self.acting, self._keyed, self._scans = ActingChecks(), KeyedActs(), ScanChecks()
        self._values, self._clocks = ValueChecks(), ClockChecks()
        self._order = FleetOrderChecks()
        self._frontiers, self._logs = FrontierWatch(), defaultdict[str, LogWatch](LogWatch)
        self._dots: dict[tuple[Any, ...], Any] = {}
        self._last_seq: dict[Replica, int] = {}
        self._digests: dict[tuple[str, str], set[int]] = defaultdict(set)
        self._looked_at: dict[tuple[int, str], int] = {}
        self._repeated_us: dict[tuple[str, str], int] = {}
        self._answered: dict[Sink, tuple[int, int, int]] = {}
        self._versions: dict[tuple[int, str, str, int], Version] = {}

    def published(self, world: World, device: VirtualDevice, publication: Publication) -> None:
        """Look at what a device publishes, before anything can happen to it."""
        topic, payload = publication.topic, publication.payload
        self.trace.update(topic.encode() + payload)
        if world.scenario.acting:
            self.acting.published(world, device, topic, payload)
        if not payload or world.broker.route(topic) is NOWHERE:
            return  # taken back, or for people
        if not world.broker.route(topic).landers and not self.quiet:
            return
        frame = decoded(payload)
        if type(frame) is PaneFrame:  # frames have no subclasses
            self._panes(world, device, frame)
        elif type(frame) is VariableFrame:
            self._entry(world, frame)
        elif type(frame) is BeatFrame:
            self._beat(world, device, frame)
        if self.quiet:
            check_quiet(world, device, frame, self._repeated_us)

    def _beat(self, world: World, device: VirtualDevice, frame: BeatFrame) -> None:
        self.beats[device] += self.quiet
        for report in frame.reports:
            self._digests[device.name, report.variable].add(report.digest)
        check_highs(world, device, frame.highs)
        world.trouble += [*hasty(device, frame), *ceased(device, frame)]
        for sink in world.sinks:
            check_done(world, device, sink, frame)
            low = frame.low_of(sink.sink, sink.lander.lake)
            if low is not None and low.low_us is not None:
                check_waiting(world, device, sink, low.low_us)
                if not sink.refused:
                    check_promise(world, device, sink, low.low_us)
                    if world.scenario.ordered:
                        world.trouble += check_items(world, device, sink, low.low_us)

    def _panes(self, world: World, device: VirtualDevice, frame: PaneFrame) -> None:
        for block in frame.blocks:
            replica = Replica(block.incarnation, block.nonce, device.name)
            last = self._last_seq.get(replica)
            partials = zip(*block.columns, strict=True)
            for key, pane_us, seq, partial in zip(
                block.keys, block.panes_us, block.seqs, partials, strict=True
            ):
                dot = (block.stream, key, pane_us, replica, seq)
                self._names_one(world, dot, partial)
                if last is not None and seq > last and replica != frame.sender:
                    world.trouble.append(f"{device.name} continues a frozen entry: {dot}")

    def _entry(self, world: World, frame: VariableFrame) -> None:
        if frame.stream:
            dot = (frame.variable, frame.shard, frame.version)
            self._names_one(world, dot, (frame.keys, frame.seqs, frame.columns))

    def _names_one(self, world: World, dot: tuple[Any, ...], content: Any) -> None:
        known = self._dots.setdefault(dot, content)
        if known != content:
            world.trouble.append(f"a dot names two things: {dot} is {known} and {content}")

    def ticked(self, world: World, device: VirtualDevice, unsent: Publication | None) -> None:
        """Look at what has left, and what has not."""
        check_delivery(world, device, unsent, self._dots)
        if world.scenario.acting:
            self.acting.ticked(world, device)
            level = level_of(device, device.now_us(world.now_us))
            world.trouble += wrong_alerts(device, level)
            if world.scenario.keyed:
                world.trouble += self._keyed.wrong(device, level, world.now_us)

    def connected(self, world: World, device: VirtualDevice) -> None:
        """Demand that it waits for no answer to what the connection before may have lost."""
        check_connection(world, device)
        check_process(world, device)
        world.trouble += miscounted(device)
        self._keyed.connected(device, world.now_us)

    def ended(self, world: World, device: VirtualDevice) -> None:
        """Note how far a replica came: its entries are frozen from now on."""
        self._last_seq[device.core.replica] = device.core.panes.memory.seq
        check_process(world, device)
        if world.scenario.shared:
            world.trouble += unstored(world, device)
        if not device.disk_until:
            world.trouble += forgotten(device)

    def stepped(self, world: World) -> None:
        """Look at each sink, and at one device, a different one after each step."""
        for sink in world.sinks:
            world.stores.add(sink.lander.lake)
            world.trouble += self._frontiers.wrong(sink, world.step_number)
            world.trouble += [*unanswered(world, sink, world.step_number), *_not_durable(sink)]
            world.trouble += wrong_notes(world, sink)
            if world.scenario.operated:
                world.trouble += self._logs[sink.sink].wrong(sink)
        if world.scenario.ordered:
            self._order.stepped(world)
        devices = world.running()
        if not devices:
            return
        device = devices[world.step_number % len(devices)]
        self._settled(world, device)
        self._bounded(world, device)
        check_sinks(world, device, self._answered)
        self._holds(world, device)
        world.trouble += self._values.wrong(device, world.step_number)
        world.trouble += [*retired_unsaid(device), *not_expired(device, world.now_us)]
        self._of_program(world, device)
        for each in devices:
            self._grows(world, each)
            check_landed_since(world, each)
            check_reading(world, each)
            check_clock(world, each)
            world.trouble += self._clocks.wrong(world, each)

    def _of_program(self, world: World, device: VirtualDevice) -> None:
        scenario = world.scenario
        if scenario.silent_s:
            check_silence(world, device)
        if scenario.shared:
            check_traces(world)
        if scenario.keyed:
            check_ages(world, device)
        if scenario.scans:
            self._scans.stepped(world, device)
        if scenario.synced:
            world.trouble += unowed(device, world.now_us)

    def _settled(self, world: World, device: VirtualDevice) -> None:
        core = device.core
        for name, agreement in core.agreements.all().items():
            fold = core.agent.plan.dynamic_folds[name]
            now = core.agreements._agreement(fold)  # noqa: SLF001 - without what is remembered
            if now != agreement:
                world.trouble.append(f"{device.name} remembers {agreement}, and it is {now}")
            if not agreement.settled:
                continue
            variable = fold.source.name
            entries = core.samples.published[variable].entries
            apart = {device.name, *agreement.offline, *core.commands.retired}
            for other in core.samples.counting(fold).devices:
                reported = self._digests.get((other, variable), ())
                if other not in apart and entries.digest not in reported:
                    world.trouble.append(
                        f"{device.name} says settled, and {other} has never reported that"
                    )

    def _grows(self, world: World, device: VirtualDevice) -> None:
        core = device.core
        nonce = core.replica.nonce
        for name, published in core.samples.published.items():
            seen = (nonce, name)
            if self._looked_at.get(seen) == published.entries.digest:
                continue  # nothing has moved since
            self._looked_at[seen] = published.entries.digest
            for other, shard, entry in counting(published.entries):
                at = (nonce, name, other, shard)
                if entry.version < self._versions.get(at, entry.version):
                    world.trouble.append(f"{device.name}: {name} of {other} went back")
                self._versions[at] = entry.version

    def _holds(self, world: World, device: VirtualDevice) -> None:
        """Look for entries that are not held for a sink any more, and have not landed there."""
        memory = device.core.panes.memory
        stores = {sink.lander.lake: sink for sink in world.sinks}
        results = {each.stream for each in world.plans[-1].stream_results.values()}
        sizes_us = {each.stream: each.size_us for each in world.plans[-1].windows.values()}
        for sink in device.core.panes.sinks:
            store = stores.get(sink.store)
            if store is None:
                continue
            landed, not_taken = store.lander.panes, store.not_taken[device.name]
            unkept = set() if store.lander.keeps_all else results
            waits = sink.flights.holds if sink.flights.count else None
            for pane, entry in memory.entries.items():
                if entry.refused & sink.bit and memory.key(pane) not in not_taken:
                    world.trouble.append(f"{device.name}: {sink.name} never refused this {pane}")
                if entry.dirty & sink.bit or pane.stream in unkept:
                    continue
                pane_us, stream, key, *of = pane
                of_lake = (stream, key, pane_us, device.name, *of)
                if (of_lake not in landed or landed[of_lake][0] < entry.seq) and not has_closed(
                    store, pane_us, sizes_us.get(stream, 0)
                ):
                    world.trouble.append(f"{device.name} dropped {pane}, {sink.name} lacks it")
                if waits is not None and waits(memory.key(pane)):
                    world.trouble.append(f"{device.name} waits for an answer to {pane}: it came")

    def _bounded(self, world: World, device: VirtualDevice) -> None:
        core = device.core
        flights = [sink.flights.count for sink in core.panes.sinks]
        if max(flights) > MOST_IN_FLIGHT or len(core.counters.totals) > KEPT_NAMES:
            world.trouble.append(f"{device.name}: a queue is not bounded")

    def at_the_end(self, world: World) -> None:
        """Hold a settled world against the truth."""
        for device in world.running():
            check_process(world, device)
            world.trouble += miscounted(device)
        check_clocks_at_rest(world)
        clones = bool(world.seen["clone"])
        for device in world.devices.values():
            for sink in world.sinks:
                check_landed(world, device, sink, clones=clones)
                if not clones:
                    world.trouble += unnamed(world, device, sink)
                    world.trouble += misdated(world, device, sink)
            check_own_samples(world, device)
        self._windows(world)
        check_shared(world)
        world.trouble += [*kept_for_others(world), *wrong_operated(world)]
        if world.scenario.scans:
            self._scans.at_the_end(world)
        if world.scenario.ordered:
            self._order.at_the_end(world)
        self._agree(world)

    def _windows(self, world: World) -> None:
        """Compare the windows of all sinks with the panes that landed, and what they go by."""
        for sink in world.sinks:
            if isinstance(sink, VirtualGateway):
                world.trouble += [*sink.misread(), *wrong_results(world, sink)]
            else:
                world.trouble += sink.lander.not_kept()
            world.trouble += unfinished(world, sink)
            # A lake that was lost was kept by the program that ran then.
            lost = [(each.plan, each) for each in sink.former if each.is_of_plan]
            kept = [(world.plans[-1], sink.lander), *lost]
            due_us = sink.lander.core.waiting.due_us(sink.terms.tentative_after_us)
            for plan, lander in kept:
                of_now = due_us if lander is sink.lander else None
                wrong = wrong_windows(plan, lander, sink.terms, of_now)
                world.trouble += [f"{sink.sink}: {what}" for what in wrong]

    def _agree(self, world: World) -> None:
        """Compare what all devices hold of the fleet's values."""
        first, *others = world.running()
        for name in first.core.agent.plan.dynamic_folds:
            values = first.results(name)
            for other in others:
                found = other.results(name)
                if {k: v.partial for k, v in found.items()} != {
                    k: v.partial for k, v in values.items()
                }:
                    world.trouble.append(f"{other.name} holds another {name} than {first.name}")


def _not_durable(sink: AnySink) -> list[str]:
    """Return where what is durable is not the outcome of whole turns, once a process has ended."""
    has_ended, sink.ended = sink.ended, False
    if not has_ended or not sink.lander.is_of_plan:
        return []
    wrong = wrong_windows(sink.lander.plan, sink.lander, sink.terms)
    return [f"{sink.sink}, where it ended: {what}" for what in wrong]
