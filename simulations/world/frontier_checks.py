"""What must hold of how far each sink's windows are final, after each step.

- the frontier never goes back, and passes no promise of a device that was heard lately, by the true
  time, as that was when the frontier moved: by the next look it may be for less; nobody else holds
  it: not who is silent for long, who is done or retired, or who promises nothing; where a sink had
  no connection for long, nobody was silent
- a sink has listened for no longer than it had a connection, but for short outages
- who has ended has ended for the sinks that its beats name
- where all that are waited for have ended, no row is tentative, but of a window for which a clock
  was ahead: the device is back from there, and promises nothing of a time to come
- an answer that did not leave leaves as soon as it can, with all that was in it
- what a device had sent before it was retired is not refused
- a device of the roster that was never heard is waited for, for as long as one that is silent;
  windows expect nobody else than the roster, or whoever was heard, without those that are retired
- a promise came from its device, and is not one that the broker had kept; one that comes again
  was heard when it first came
- how far a device's sources had come, as a sink's process tells it, never goes back; nor does how
  far the device has ever promised there, until an operator makes its promise void
"""

from collections.abc import Iterator
from operator import gt

from crdts.frontier import BOTTOM_US, Promise
from device_agent.gateway.core import GatewayCore
from lasp_edge.protocol.frontier import CLOCKS_DIFFER_US
from lasp_edge.protocol.limits import EARLIEST_PANE_US
from lasp_edge.protocol.status import TENTATIVE
from lasp_edge.protocol.window_rows import FleetRow
from lasp_edge.protocol.witness import Testimony, Witness
from simulations.world.due_checks import overdue
from simulations.world.faults import STEP_US
from simulations.world.landed import LandedState
from simulations.world.sinks import AnySink
from simulations.world.window_checks import pruned_too_soon
from simulations.world.world import World

LOOK_STEPS = 4
"""Steps between two looks at who holds the frontier: what is wrong there lasts."""
SPARE_STEPS = 2
"""Steps by which a sink may count silence otherwise: it commits late, and clocks drift."""


class FrontierWatch:
    """Looks at the frontier of each sink after each step."""

    def __init__(self) -> None:
        self._before: dict[str, int | None] = {}
        self._heard: dict[tuple[str, str], Promise] = {}
        self._pruned: dict[str, object] = {}
        self._testimonies: dict[str, tuple[Witness, dict[str, Testimony]]] = {}
        self._reached: dict[str, tuple[GatewayCore, dict[str, int]]] = {}

    def wrong(self, sink: AnySink, step: int) -> Iterator[str]:
        """Yield what is wrong with a sink's frontier."""
        lander = sink.lander
        is_first = lander.file not in self._before  # it may have moved before the file was put back
        before_us = self._before.get(lander.file)
        after_us = self._before[lander.file] = lander.coverage.frontier
        if step % LOOK_STEPS == 0:
            yield from [*_held_back(sink, after_us), *_expects_others(sink)]
            yield from [*_kept_by_the_broker(sink), *self._heard_again(sink)]
            yield from [*self._tells_less(sink), *self._forgets_how_far(sink)]
            yield from overdue(lander, sink.terms)
        yield from [*_listened(sink), *_forgotten(sink, step)]
        yield from [*self._deleted(sink), *sink.wrong, *lander.kept.wrong]
        if after_us == before_us or is_first:
            return
        if after_us is None or (before_us is not None and after_us < before_us):
            yield f"the frontier of {lander.lake} went from {before_us} back to {after_us}"
            return
        lately = sink.second - sink.terms.dead_after_us // STEP_US + SPARE_STEPS
        for device in _expected(sink):
            promise = lander.kept.moved_by.entries.get(device)
            if promise is None or promise.done or promise.low_us is None:
                continue
            heard = max(sink.beats[device].get(promise.version, 0), sink.listens_from)
            is_heard = heard >= lately
            if is_heard and promise.low_us < after_us:
                yield f"the frontier of {lander.lake} passed the promise of {device}"
        if _never_heard(sink, lander):
            yield f"the frontier of {lander.lake} moved before all of the roster were heard"

    def _deleted(self, sink: AnySink) -> Iterator[str]:
        """Yield the windows of which a sink has deleted panes that they may need."""
        kept, file = sink.lander.kept, sink.lander.file
        if kept.pruned is not self._pruned.get(file):
            self._pruned[file] = kept.pruned
            yield from pruned_too_soon(sink.lander, sink.terms.retain_us)

    def _heard_again(self, sink: AnySink) -> Iterator[str]:
        """Yield the promises that came later than they first did."""
        for device, promise in sink.lander.promises.entries.items():
            before = self._heard.get((sink.lander.file, device), promise)
            self._heard[sink.lander.file, device] = promise
            is_same = before == promise._replace(heard_us=before.heard_us)
            if is_same and promise.heard_us > before.heard_us:  # clocks go back
                yield f"{sink.lander.lake} heard the same promise of {device} once more"

    def _tells_less(self, sink: AnySink) -> Iterator[str]:
        """Yield the devices of which a process of a sink tells less than it did."""
        witness, file = sink.lander.witness, sink.lander.file
        before, seen = self._testimonies.get(file, (witness, {}))
        seen = seen if before is witness else {}
        for device in sink.lander.promises.entries:
            known, was = witness.of(device), seen.get(device)
            if known is None or known is was:
                continue  # nothing was heard of it since
            seen[device] = known
            highs = {each.source: each for each in known.highs}
            for source, *came in was.highs if was else ():
                now = highs.get(source, (source, 0, 0))
                if any(map(gt, came, now[1:])):
                    yield f"{sink.lander.lake} tells that {device} came to {now}, and had: {came}"
        self._testimonies[file] = witness, seen

    def _forgets_how_far(self, sink: AnySink) -> Iterator[str]:
        """Yield the devices of which a process of a sink forgets how far they had promised."""
        core, file = sink.lander.core, sink.lander.file
        before, reached = self._reached.get(file, (core, {}))
        reached = reached if before is core else {}
        known = core._liveness  # noqa: SLF001 - what rows are named by
        for device, promise in known.promises.entries.items():
            low_us = BOTTOM_US if promise.low_us is None else promise.low_us
            now_us = max(low_us, known.furthest_us.get(device, low_us))
            if device not in known.former_us and now_us < reached.get(device, now_us):
                yield f"{sink.lander.lake} forgets that {device} came to {reached[device]}"
            reached[device] = now_us
        self._reached[file] = core, reached


def _expected(sink: AnySink) -> list[str]:
    """Return the devices that windows wait for, if they are alive."""
    known, roster = sink.lander.promises.entries, sink.terms.roster
    retired = sink.lander.membership.retired
    return [device for device in (known if roster is None else roster) if device not in retired]


def _expects_others(sink: AnySink) -> Iterator[str]:
    """Yield that a sink's windows expect other devices than they should."""
    found = {*sink.lander.coverage.expected}
    if sink.lander.listening is not None and found != {*_expected(sink)}:
        yield f"{sink.lander.lake} expects {sorted(found)}, not {sorted(_expected(sink))}"


def _never_heard(sink: AnySink, lander: LandedState) -> bool:
    """Return whether a device of the roster may still speak for the first time."""
    if sink.terms.roster is None or lander.listening is None:
        return False
    if lander.listening.lasted_us > sink.terms.dead_after_us:
        return False
    return any(device not in lander.promises.entries for device in _expected(sink))


def _held_back(sink: AnySink, frontier_us: int | None) -> Iterator[str]:
    """Yield that a sink's frontier is not as far as promises let it be."""
    lander, dead_us = sink.lander, sink.terms.dead_after_us
    listening = lander.listening
    if listening is None or _never_heard(sink, lander):
        return
    is_first = frontier_us is None and sink.terms.roster is None
    if is_first and listening.lasted_us <= dead_us:
        return
    lows_us, done_us = [], []
    for device in _expected(sink):
        promise = lander.promises.entries.get(device)
        if promise is None or promise.low_us is None:
            continue
        if promise.done:
            done_us.append(promise.low_us)
        # What came at a time that is not yet was heard by a clock that was ahead.
        is_known = promise.heard_us <= listening.now_us + CLOCKS_DIFFER_US
        heard_us = max(promise.heard_us if is_known else 0, listening.since_us)
        if not promise.done and listening.now_us <= heard_us + dead_us:
            lows_us.append(promise.low_us)
    allowed_us = min(lows_us, default=max(done_us, default=BOTTOM_US))
    if allowed_us > (EARLIEST_PANE_US if frontier_us is None else frontier_us):
        yield f"the frontier of {lander.lake} is {frontier_us}, and promises allow {allowed_us}"


def _kept_by_the_broker(sink: AnySink) -> Iterator[str]:
    """Yield the promises that no beat of their device brought."""
    for device, promise in sink.lander.promises.entries.items():
        if promise.version not in sink.beats[device]:
            yield f"{sink.lander.lake} takes what the broker kept for a promise of {device}"
        elif promise.done and promise.version not in sink.done[device]:
            yield f"{device} has not ended for {sink.lander.lake}, which takes it for done"


def unfinished(world: World, sink: AnySink) -> Iterator[str]:
    """Yield the windows that are tentative though nothing more will come for them.

    Whoever has ended promises the end of the last window that has a reading of its own, and that
    its own program has. Whoever is not on a roster is not waited for, ended or not.
    """
    lander, plans = sink.lander, [device.plan for device in world.devices.values()]
    expected = _expected(sink)
    promises = [lander.promises.entries.get(device) for device in expected]
    has_begun = lander.coverage.frontier is not None
    if not has_begun or not all(promise is not None and promise.done for promise in promises):
        return
    for at, rows in lander.revisions.items():
        row = rows[-1]
        if not all(at.window in plan.windows for plan in plans):
            continue
        devices = {device for device, _ in _contributions(lander, row)}
        if row.status == TENTATIVE and devices & {*expected} and not _is_ahead(world, lander, row):
            yield f"all have ended for {lander.lake}, and {at} is tentative"


def _contributions(lander: LandedState, row: FleetRow) -> Iterator[tuple[str, int]]:
    """Yield (device, start of its pane) of all that a window is made of."""
    for stream, _, pane_us, name, *_ in lander.panes:
        if stream == row.stream and row.at.start_us <= pane_us < row.end_us:
            yield name, pane_us


def _is_ahead(world: World, lander: LandedState, row: FleetRow) -> bool:
    """Return whether a window has readings of a clock that was ahead, and was set right."""
    for name, pane_us in _contributions(lander, row):
        for key in world.addresses.of.get(name, ()):
            device = world.devices[key]
            high_us = device.core.intake.progress.high_us
            if device.clock.was_wrong and high_us is not None and high_us < pane_us:
                return True
    return False


def _listened(sink: AnySink) -> Iterator[str]:
    """Yield that a sink counts time in which it could hear nobody."""
    listening = sink.lander.listening
    if listening is None or not sink.is_connected:
        return
    is_new = abs(listening.now_us - sink.clock.read(sink.true_us)) < STEP_US
    most_us = (sink.second - sink.listens_from + SPARE_STEPS) * STEP_US
    if is_new and listening.lasted_us > most_us:
        yield f"{sink.name} has listened for {listening.lasted_us} us, of at most {most_us}"


def _forgotten(sink: AnySink, step: int) -> Iterator[str]:
    """Yield that an answer did not leave, and was not offered when the link took it."""
    if sink.unsent and sink.is_connected and step >= max(sink.full_until, sink.slow_until):
        yield f"{sink.name} forgot the answer to {min(sink.unsent)} that did not leave"
