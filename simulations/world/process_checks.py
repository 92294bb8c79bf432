"""What must hold of each process of an agent: no part of it fails, and what is counted stays.

- nothing that an agent runs under its guard ever raises: that is its own bug, whatever came
- a process reads nothing before a lander has heard who the device is now, and so takes nothing
  that an earlier life of it sent, or has had the time for it: peers know less
- readings count unless there is a reason: none is doubtful where no store was lost or copied, none
  is late where all are kept, and none lies in the future of a clock that was always right
- a clock that is right is never left, where those of all devices are, whatever sinks' clocks say
- who starts in 1970 goes by the first clock that it hears; and once all clocks are right, each
  device trusts its own
- a device reports within seconds that two sinks of one name answer it
- a device moves to each store once, however often somebody plays what a former one had answered
- a device refuses no frame, and meets no other life and no other store, where nothing is the cause
- after all is settled it says nothing but beats, and repeats commands seldom
- no more lines are reported as possibly counted twice than its store has taken in
- a process that goes on from a store knows at least what the one before it knew when it began
"""

from collections.abc import Iterator
from typing import Final

from device_agent.agent.panes.sinks import MOVES, TWO_STORES
from device_agent.agent.settings import Settings
from device_agent.agent.timing.judgement import ALONE_US
from lasp_edge.protocol.commands import CommandFrame
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.frames import AskFrame, PaneFrame, VariableFrame
from lasp_edge.protocol.repeating import REPEAT_US
from simulations.world.device import LINES, TWICE, VirtualDevice
from simulations.world.faults import STEP_US
from simulations.world.kept_checks import forgotten
from simulations.world.programs import COLUMN_ROOM
from simulations.world.scenario import CLOCKS, UNSYNCHRONISED_START_US
from simulations.world.truth import LONG_S
from simulations.world.world import World

_CARDS = frozenset({"store_lost", "older_image", "unsynced_lost", "bit_flip", "clone", "held_up"})
_SINKS = frozenset(
    {"new_lake", "gateway_old", "gateway_torn", "gateway_jump", "twin", "power_lost"}
)
CAUSES: Final[dict[str, frozenset[str]]] = {
    "frame: a vouch that was not asked for": frozenset(),
    # A sink whose clock stands in 1970, or was set back by more than an hour, seems to answer late.
    "frame: old acknowledgement": frozenset({"recorded_answers", "gateway_1970", "gateway_jump"}),
    "frame: integer out of range": frozenset({"hostile", "gateway_1970"}),  # before the epoch
    "frame: ": frozenset({"hostile"}),
    # Which stores a sink's store follows from may reach the other life of a clone alone.
    "sink: ": _SINKS | {"recorded_answers", "hours", "hostile", "clone"},
    # Who is on an older card may hear what was sent to the life before, and names no former store.
    "sinks: another store": _SINKS | {"older_image"},
    "fence: later lives met": _CARDS | {"forged_hello"},
    "clone_alarms": _CARDS | {"hostile", "forged_hello"},
}
"""How what a device counts against others begins, and the kinds of faults of which one must have
happened somewhere; none where nothing has to."""
_NEVER: Final = ("refused", "doubtful", TWICE)
"""What no reading is where no store was lost, and no stranger has invented another life."""
HEARS_US = 3 * STEP_US + ALONE_US
"""Microseconds after which a clock that was heard counts, at the latest."""
WAIT_US = Settings().fence_wait_us
"""Microseconds that a process gives to landers."""


def check_reading(world: World, device: VirtualDevice) -> None:
    """Look at a process that runs."""
    waited_us = world.now_us - device.begun_us
    if waited_us >= WAIT_US or not device.core.fence.lets_read:
        return
    # Who changes a hello on its way gets an answer for this device that says nothing of it.
    is_known = device.vouched if world.seen["hostile"] else device.core.replica in device.vouched
    if not is_known:
        world.trouble.append(f"{device.name} reads after {waited_us} us, no lander knows of it")


def check_clock(world: World, device: VirtualDevice) -> None:
    """Demand that a clock that was right is never left, where no device's clock ever was wrong."""
    state = device.core.timing.state
    if state == "trusted":
        return
    if any(each.clock.wrong or each.clock.was_wrong for each in world.devices.values()):
        if state == "waiting" and _hears_time(world, device):
            world.trouble.append(f"{device.name} hears the time, and still waits for it")
        return
    if device.starts:
        world.trouble.append(f"{device.name}: its clock is right, and it is {state}")


def _hears_time(world: World, device: VirtualDevice) -> bool:
    """Return whether a device begins with the epoch, and an answer of a sink had the right time.

    No other clock is wrong in the world.
    """
    if not device.answered_us or world.now_us < device.answered_us + HEARS_US:
        return False
    is_odd = (CLOCKS - {"clock_1970"} | {"gateway_jump", "hostile"}) & world.seen.keys()
    is_early = device.clock.read(world.now_us) < UNSYNCHRONISED_START_US // 2
    return is_early and not is_odd and not any(each.clock.wrong for each in world.sinks)


def check_clocks_at_rest(world: World) -> None:
    """Demand that each clock is trusted once all are right, and that stores know the time."""
    for device in world.running():
        if CLOCKS & world.seen.keys():
            world.trouble += forgotten(device)
        if device.core.timing.state != "trusted":
            world.trouble.append(f"{device.name}: all is at rest, and its clock is not trusted")


def check_process(world: World, device: VirtualDevice) -> None:
    """Look at a process that has just connected, or is about to end."""
    if device.uncounted:
        world.trouble.append(f"{device.name} has forgotten counts of: {min(device.uncounted)}")
    for reason in _unreasonable(world, device):
        world.trouble.append(f"{device.name}: {device.counted(reason)} readings are {reason}")
    twice, most = device.counted(TWICE), _accepted(world, device)
    if most is not None and twice > most:
        world.trouble.append(f"{device.name} took {most} lines in, and reports {twice} as doubled")
    moves, stores = device.counted(MOVES), len(world.stores)
    if moves > stores and not (world.seen["hostile"] or world.seen["hours"]):
        world.trouble.append(f"{device.name} moved {moves} times, and there were {stores} stores")
    world.trouble += [f"{device.name} counts without cause: {x}" for x in _uncaused(world, device)]
    failed = device.core.agent.guard.reasons
    if failed:
        world.trouble.append(f"{device.name}: {failed[0]}")


def _accepted(world: World, device: VirtualDevice) -> int | None:
    """Return how many lines a device's store has taken in, at most; None where some have waited."""
    if world.scenario.unsynchronised or device.clock.wrong or device.clock.was_wrong:
        return None
    if device.is_copy:  # of a store in which some may have waited
        return None
    lines = device.position
    if world.scenario.columns:  # a column is taken in before the lines that it is made of
        given = device.recording[: device.position + LINES]
        lines += sum(line.room == COLUMN_ROOM for line in given)
    return lines + (0 if device.meter is None else device.meter.position)


def _uncaused(world: World, device: VirtualDevice) -> Iterator[str]:
    """Yield what a device has counted against others, where nothing happened that gives a cause."""
    for name in device.core.counters.totals:
        causes = next((kinds for begin, kinds in CAUSES.items() if name.startswith(begin)), None)
        if causes and not causes & world.seen.keys():
            yield name


def check_quiet(
    world: World, device: VirtualDevice, frame: Frame, repeated_us: dict[tuple[str, str], int]
) -> None:
    """Look at what a device publishes at rest; `repeated_us` has when it repeated each command."""
    if isinstance(frame, PaneFrame | VariableFrame | AskFrame):
        world.trouble.append(f"{device.name} speaks after all is settled: {frame}")
    if isinstance(frame, CommandFrame):
        at = device.name, str(frame.subject)
        since_us, repeated_us[at] = repeated_us.get(at), world.now_us
        if since_us is not None and world.now_us < since_us + REPEAT_US:  # it was heard, by all
            world.trouble.append(f"{device.name} repeats a command again and again: {frame}")


def check_twins(world: World, device: VirtualDevice, sink: str) -> None:
    """Demand that a device has reported that two sinks of one name have answered it."""
    if not device.counted(f"sink: {TWO_STORES.format(sink)}"):
        world.trouble.append(f"{device.name} has not reported that two sinks are called {sink}")


def _unreasonable(world: World, device: VirtualDevice) -> list[str]:
    """Return under which names a device counted readings that nothing speaks against."""
    if device.forgot or device.uncertain or device.is_copy:
        return ["refused"] if device.counted("refused") else []
    reasons = ["refused", "doubtful"] if world.seen["forged_hello"] else [*_NEVER]
    if not (device.clock.wrong or device.clock.was_wrong):
        reasons.append("in_the_future")
        first = [line for line in device.recording if line.time_us < 0]  # behind no promise at all
        first_lines = len(first) + sum(line.room == COLUMN_ROOM for line in first)  # and in columns
        first_lines *= (
            1 + device.is_odd
        )  # a line of its time, that is no reading, comes before each
        if world.scenario.columns and first_lines:
            first_lines = device.counted("too_late")  # a column is read again after each crash
        if world.scenario.retain_s >= LONG_S and device.counted("too_late") > first_lines:
            reasons.append("too_late")
    return [reason for reason in reasons if device.counted(reason)]
