"""One reading after the other: the definition of what is accepted, repeated, too late or refused.

A reading is quantised once; one with an own time is looked up among the known identities; then the
program's keys, folds and handlers see it. Only a reading that passed all of that changes anything,
so a function of the user's that fails refuses its reading and nothing else.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from device_agent.agent.agent import Agent
from device_agent.agent.intake.batch import Batch
from device_agent.agent.intake.identities import STAMPED, TAKEN_BACK, Identities
from device_agent.agent.intake.pending import PaneSamples, PendingBatch, has_room
from device_agent.agent.intake.progress import STAMP_AHEAD_US, IntakeProgress
from device_agent.agent.intake.routes import Route, WindowTarget
from device_agent.agent.panes.panes import Panes, PartialOutOfRangeError
from device_agent.agent.parts import StoreReader
from device_agent.agent.stored_rows import PaneId, ReadingRow, Retraction
from device_agent.agent.variables.variables import Variables
from lasp_edge.errors import pass_interrupt
from lasp_edge.event import Event, StreamItem, in_order
from lasp_edge.folds.columns import Partial
from lasp_edge.folds.numbers import Refused
from lasp_edge.language.updates import Mutation, ValueOf, run_handlers
from lasp_edge.reasons import reason_of


class OneByOne:
    """Accepts readings of any kind, one after the other.

    Args:
        agent: what all parts share.
        routes: where the readings of each event go.
        progress: how far the readings have come.
        identities: which readings are known.
        panes, variables: what readings are checked against, and change.
        value_of: returns what folds are worth, for handlers that ask.
    """

    def __init__(
        self,
        agent: Agent,
        routes: Mapping[str, Route],
        progress: IntakeProgress,
        identities: Identities,
        panes: Panes,
        variables: Variables,
        value_of: ValueOf,
    ) -> None:
        self._agent, self._value_of = agent, value_of
        self._plan, self._device = agent.plan, agent.replica.device
        self._routes, self._progress, self._identities = routes, progress, identities
        self._panes, self._variables, self._text_of = panes, variables, identities.text_of
        self._unlanded = panes.unlanded
        self._max_skew_us = agent.settings.max_skew_us
        self._keep_readings = agent.settings.keep_readings

    def accept(
        self, batch: Batch, pending: PendingBatch, store: StoreReader
    ) -> tuple[int | None, bool]:
        """Accept what is acceptable of a batch.

        Returns:
            The greatest own time that was accepted, and whether readings were stamped.
        """
        high_us, stamped, dated_us = None, False, batch.dated_us
        places, clocks_us = iter(batch.places), iter(batch.clocks_us)
        for name, own_us, tags, value in zip(
            batch.names, batch.times_us, batch.tags, batch.values, strict=True
        ):
            try:
                pending.place = next(places, "")
                pending.clock_us = next(clocks_us, pending.clock_us)
                route = self._routes.get(name)
                if route is None:
                    pending.refuse("unknown event")
                    continue
                quantised = route.quantise(value)
                time_us = self._accept_one(
                    pending, store, name, own_us, dated_us, tags, quantised, value
                )
            except BaseException as error:  # noqa: BLE001 - a source may give anything
                taken_us = self._failed(
                    pending, store, (name, own_us, tags, value, batch.source), error
                )
                high_us = taken_us if high_us is None else max(high_us, taken_us or high_us)
                continue
            if time_us is None:
                continue
            if own_us is None:
                stamped = True
                dated_us = None if dated_us is None else dated_us + 1
            elif high_us is None or own_us > high_us:
                high_us = own_us
            if self._keep_readings:
                pending.readings.append(
                    ReadingRow(
                        *(self._progress.stamp_us, name, time_us, value, quantised),
                        *(self._text_of(tags), batch.source),
                    )
                )
        return high_us, stamped

    def _accept_one(  # noqa: C901, PLR0912, PLR0915 - the path that every single reading takes
        self,
        pending: PendingBatch,
        store: StoreReader,
        name: str,
        own_us: int | None,
        dated_us: int | None,
        tags: Mapping[str, str],
        quantised: int,
        value: Any,
    ) -> int | None:
        """Accept a reading and return its time, or count why not and return None."""
        progress, block, clock_us, stream = self._progress, None, pending.clock_us, ""
        next_us = progress.stamp_us + 1
        stamp_us = next_us if clock_us <= next_us <= clock_us + STAMP_AHEAD_US else clock_us
        placed_us = stamp_us if dated_us is None else dated_us
        time_us = placed_us if own_us is None else own_us
        if time_us < progress.floor_us:
            pending.counted["too_late"] += 1
            return None
        if own_us is not None:
            if type(own_us) is not int:
                raise TypeError(f"a time in microseconds is an integer, not {own_us!r}")
            if own_us > clock_us + self._max_skew_us:
                pending.counted["in_the_future"] += 1
                return None
            stream = (
                self._identities.stream_of(tags, pending.place) if tags or pending.place else ""
            )
            block = self._identities.at(name, stream, own_us, store)
            if own_us <= block.last_us and block.holds(own_us, quantised):
                pending.counted["repeated"] += 1
                pending.has_come_twice |= block.has_come(own_us, quantised)
                return None
            if pending.doubt_us is not None and own_us <= pending.doubt_us:
                pending.counted["doubtful"] += 1  # an earlier life may have accepted it
                return None
        route = self._routes[name]
        if not self._route(pending, store, route, tags, quantised, value, time_us):
            return None
        if route.passed_on:
            if own_us is None:
                stream = self._text_of(tags) if tags else ""  # no two are stamped alike
            item = value if route.event.text else quantised
            pending.column((name, self._device, stream, False)).add(time_us, item)
            if route.kept and own_us is None:
                block = self._identities.at(name, STAMPED + stream, time_us, store)
                if block.holds(time_us, quantised):
                    block = None
        if block is not None:
            block.put(time_us, quantised)
            if not block.changed:
                self._identities.touched(block)
        pending.accepted += 1
        if time_us < self._unlanded.watched_us:
            self._unlanded.add(time_us, progress.promised_us)
            if time_us < progress.promised_us:
                pending.counted["late"] += 1
        progress.stamp_us = stamp_us
        if progress.high_us is None or time_us > progress.high_us:
            progress.reach(time_us)
        return time_us

    def _failed(
        self,
        pending: PendingBatch,
        store: StoreReader,
        reading: tuple[str, int | None, Mapping[str, str], Any, str],
        error: BaseException,
    ) -> int | None:
        """Refuse what is no reading; return the time of a retraction."""
        name, own_us, tags, value, source = reading
        try:
            if type(value) is Retraction:
                return self._take_back(pending, store, name, own_us, tags, value.value, source)
        except BaseException as found:  # noqa: BLE001 - a source may give anything
            error = found
        _refuse(pending, name, error)
        return None

    def _take_back(
        self,
        pending: PendingBatch,
        store: StoreReader,
        name: str,
        own_us: int | None,
        tags: Mapping[str, str],
        value: Any,
        source: str,
    ) -> int | None:
        """Take a reading back; return its time, or None where it is too late for that.

        From then on the reading is known, so that it is a repeat if it comes later.

        Raises:
            Refused: it cannot be taken back.
        """
        route = self._routes[name]
        quantised = route.quantise(value)
        if route.keeps_all:
            raise Refused(f"not_revisable: {route.keeps_all}")
        if type(own_us) is not int:
            raise Refused("a retraction needs the time of what it takes back")
        if own_us < self._progress.floor_us:
            pending.counted["too_late"] += 1
            return None
        stream = self._identities.stream_of(tags, pending.place)
        item = value if route.event.text else quantised
        if route.kept and self._counts_no_more(name, stream, own_us, quantised, store):
            pending.corrected.append(
                StreamItem(name, own_us, item, stream, self._device, retracted=True)
            )
        block = self._identities.at(name, stream, own_us, store)
        if block.add(own_us, quantised):
            self._identities.touched(block)
        pending.column((name, self._device, stream, True)).add(own_us, item)
        pending.counted["retractions"] += 1
        if own_us < self._unlanded.watched_us:  # entries that held it must land again
            self._unlanded.add(own_us, self._progress.promised_us)
        if self._keep_readings:
            at_us, kept = self._progress.stamp_us, Retraction(value)
            row = ReadingRow(at_us, name, own_us, kept, quantised, self._text_of(tags), source)
            pending.readings.append(row)
        return own_us

    def _counts_no_more(
        self, name: str, stream: str, time_us: int, quantised: int, store: StoreReader
    ) -> bool:
        """Note that a reading was taken back; return whether it has counted until now."""
        gone = self._identities.at(name, TAKEN_BACK + stream, time_us, store)
        if not gone.add(time_us, quantised):
            return False
        self._identities.touched(gone)
        known = (self._identities.at(name, each + stream, time_us, store) for each in ("", STAMPED))
        return any(block.holds(time_us, quantised) for block in known)

    def _route(
        self,
        pending: PendingBatch,
        store: StoreReader,
        route: Route,
        tags: Mapping[str, str],
        quantised: int,
        value: Any,
        time_us: int,
    ) -> bool:
        """Bring a reading to its panes and variables; on an error none of them has it."""
        event: Any = None
        try:
            if route.needs_event:
                known = value if route.event.text else route.event.resolution.real(quantised)
                shown = MappingProxyType(in_order(tags) if len(tags) > 1 else tags)
                event = Event(route.event.name, known, time_us, self._device, shown)
            gathered, changed = self._in_panes(pending, store, route, event, quantised, time_us)
            if route.needs_event or route.validate_each:
                changes = self._changes_of(route, event, quantised, time_us)
                self._variables.apply(changes, pending.updates)
            else:
                for variable in route.collecting:
                    pending.updates.extend(variable.name, "", (quantised,), (time_us,))
        except BaseException as error:  # noqa: BLE001 - a user's function may raise anything
            pass_interrupt(error)
            pending.refuse(f"program: {reason_of(error)}")
            return False
        for values, times_us in gathered:
            values.append(quantised)
            times_us.append(time_us)
        for pane, partial in changed:
            self._panes.put(pane, partial, pending.since_us)
        return True

    def _in_panes(
        self,
        pending: PendingBatch,
        store: StoreReader,
        route: Route,
        event: Any,
        quantised: int,
        time_us: int,
    ) -> tuple[list[PaneSamples], list[tuple[PaneId, Partial]]]:
        """Return where a reading's samples are gathered, and what other entries will hold."""
        gathered: list[PaneSamples] = []
        changed: list[tuple[PaneId, Partial]] = []
        for target in route.targets:
            window, span_us, stream, _ = target
            key = self._plan.functions.key(window.name, event) if window.keyed else ""
            pane = self._panes.own(stream, key, time_us - time_us % span_us)
            samples = pending.samples.get(pane)
            if samples is None:
                samples = self._samples(pending, store, target, pane)
                if window.keyed:
                    self._agent.notices.look_at_key(f"window {window.name}", key)
            if samples is not None:
                gathered.append(samples)
            else:
                lifted = window.fold.lift(quantised, time_us)
                try:
                    changed.append((pane, self._panes.changed(pane, lifted, store)))
                except PartialOutOfRangeError as error:  # other windows have the reading
                    self._agent.guard.say(str(error))
        return gathered, changed

    def _changes_of(self, route: Route, event: Any, quantised: int, time_us: int) -> list[Mutation]:
        """Return the changes that collections and handlers make for a reading."""
        changes = []
        for variable in route.collecting:
            key = self._plan.functions.key(variable.name, event)
            changes.append(Mutation(variable.name, "add", (quantised, time_us), key))
        if route.needs_event:
            changes += run_handlers(self._plan, event, self._value_of)
        return changes

    def _samples(
        self, pending: PendingBatch, store: StoreReader, target: WindowTarget, pane: PaneId
    ) -> PaneSamples | None:
        """Return where samples of a pane entry are gathered; None if each may be refused."""
        fold = target.window.fold
        if target.infallible:
            held = self._panes.held(pane, store)
            if has_room(fold)(fold.zero if held is None else held):
                samples = pending.samples[pane] = ([], [])
                return samples
        return None


def _refuse(pending: PendingBatch, event: str, error: BaseException) -> None:
    pass_interrupt(error)
    known = isinstance(error, Refused)
    pending.refuse(f"{event}: {error}" if known else f"broken: {reason_of(error)}")
