"""A sink's notes on each device follow from the device's last messages.

- which windows lack readings of it, as the beat says by which the sink goes, or panes since
- which source holds its promise, whether it trusts its clock, and whether it delivers to another
  store of the sink's name
- a tentative row waits for nobody who is silent for long, or does not count
- the total of each pane that memory holds is that of the entries in the store, as operators have
  decided whose panes mean the same
"""

from collections.abc import Callable, Iterator
from typing import Any

from lasp_edge.protocol.frames import BeatFrame
from lasp_edge.protocol.sinks import UNKNOWN_STORE, store_tag
from lasp_edge.protocol.status import TENTATIVE
from simulations.world.landed import LandedState
from simulations.world.sent_checks import silent_devices
from simulations.world.sinks import AnySink
from simulations.world.stated import sent_at_all
from simulations.world.truth import has_closed
from simulations.world.world import World

LOOK_STEPS = 3
"""Steps between two looks: what is wrong there lasts until the next beat of a device."""
_SPARE_S = 4
"""Seconds until a sink has taken what it hears, at most."""
_STRANGE = frozenset({"hostile", "clone", "forged_hello", "held_up", "recorded_answers"})
"""What lets a sink refuse what came last in the name of a device."""


def wrong_notes(world: World, sink: AnySink) -> Iterator[str]:
    """Yield what a sink notes of devices that they did not say."""
    lander = sink.lander
    yield from _waits(sink, lander)
    if world.step_number % LOOK_STEPS or not sink.is_running:
        return
    yield from _begun(sink, lander)
    yield from _totals(sink, lander)
    is_late = sink.clock.wrong or sink.clock.was_wrong or world.step_number < sink.slow_until
    if not (is_late or _STRANGE & world.seen.keys()):
        yield from _of_beats(sink, lander)


def _waits(sink: AnySink, lander: LandedState) -> Iterator[str]:
    """Yield the new tentative rows that wait for devices for which nobody waits."""
    rows = [row for row in lander.kept.take_new_rows() if row.status == TENTATIVE and row.excluded]
    expected = sorted(lander.coverage.expected)
    silent = silent_devices(sink, lander, expected) if rows else None
    if silent is None:
        return
    if silent == expected:
        silent = []  # where all are, nobody has come further
    for row in rows:
        wrong = {*row.excluded}.difference(expected) | {*row.excluded}.intersection(silent)
        if wrong:
            yield f"{lander.lake} waits for {sorted(wrong)} with {row}"


def _begun(sink: AnySink, lander: LandedState) -> Iterator[str]:
    for device, promise in lander.promises.entries.items():
        second = sink.beats[device].get(promise.version)
        if second is None:
            continue
        found = sent_at_all(lander.begun.get(device, ()))
        stated = sink.stated.begun(device, promise.version, second)
        if found not in stated:
            yield f"{lander.lake} takes {found} for what lacks readings of {device}, not {stated}"


def _of_beats(sink: AnySink, lander: LandedState) -> Iterator[str]:
    """Yield what differs from what the last beats say that a process has taken in."""
    acceptance, sink_name = lander._acceptance, sink.sink  # noqa: SLF001
    known = {UNKNOWN_STORE, store_tag(lander.lake), *acceptance.ancestors}

    def is_elsewhere(beat: BeatFrame) -> bool:
        return any(low.sink == sink_name and low.store not in known for low in beat.lows)

    for device in acceptance.held_by:  # its process has heard it
        beats = sink.stated.beats[device]
        if len({beat.sender for _, beat in beats}) != 1:
            continue
        before = [beat for second, beat in beats if second < sink.second - _SPARE_S]
        several = [*before[-1:], *(beat for s, beat in beats if s >= sink.second - _SPARE_S)]
        if not before:
            continue
        notes: list[tuple[Any, Callable[[BeatFrame], Any]]] = [
            (acceptance.held_by[device], lambda beat: beat.held_by),
            (device in acceptance.ahead_us, lambda beat: beat.clock_s is not None),
            (device in acceptance.elsewhere, is_elsewhere),
        ]
        for found, stated in notes:
            if found not in map(stated, several):
                yield f"{sink.name} notes {found} of {device}, whose beats say {several}"


def _totals(sink: AnySink, lander: LandedState) -> Iterator[str]:
    """Yield the panes whose totals in memory are not what the store's entries come to.

    What came too late for all windows of a pane is not stored, and in no row.
    """
    core = lander.core
    regimes, held = core._regimes, core._panes._totals  # noqa: SLF001 - rows alone give it away
    for (stream, pane_us), totals in held.items():
        window = regimes.window_of(stream)
        if window is None:
            yield f"{lander.lake} holds {totals} of no window"
            continue
        if has_closed(sink, pane_us, regimes.of(window.name).longest_us):
            continue
        devices: dict[tuple[str, str], set[str]] = {}
        for entry in lander.kept.entries(stream, pane_us, pane_us):
            at = entry.key, regimes.scope(stream, entry.writer.device)
            devices.setdefault(at, set()).add(entry.writer.device)
        if devices != {at: {*total.devices} for at, total in totals.items()}:
            yield f"{lander.lake} holds {totals} of the pane at {pane_us}, with {devices} in it"
