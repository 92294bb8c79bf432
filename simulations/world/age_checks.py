"""What must hold of samples that a device keeps for some seconds, each room's by itself.

- a device whose clock was always right folds what it took in so lately, and nothing else
- some time after its clock was set right, it folds nothing that was stamped before
- at rest it folds nothing at all
"""

from collections import defaultdict
from collections.abc import Iterator

from lasp_edge.units import SECOND_US
from simulations.world.device import OUTCOMES, VirtualDevice
from simulations.world.programs import AGE_S, LATELY
from simulations.world.world import World

AGE_US = AGE_S * SECOND_US
Values = dict[str, tuple[int, int]]
"""Room -> number and sum of some lines."""


def check_ages(world: World, device: VirtualDevice) -> None:
    """Compare what a device folds of its latest samples with the lines that it took in."""
    if device.forgot or device.uncertain or device.is_copy or device.counted(*OUTCOMES):
        return
    if device.clock.wrong or device.taken_us == world.now_us:  # the next tick folds these
        return
    # What is committed together is as young as the last of it.
    from_us = world.now_us - AGE_US - world.scenario.commit_s * SECOND_US
    if not device.clock.was_wrong:
        least, most = _lately(device, world.now_us - AGE_US), _lately(device, from_us)
    elif world.step_number > world.scenario.steps + 2 * AGE_S:
        # What was stamped ahead by the age at most went by now, and what was further ahead at once.
        least, most = {}, _lately(device, from_us - AGE_US)
    else:
        return
    found = {key: value.partial for key, value in device.core.results.local()[LATELY].items()}
    if found == least:
        return
    counts = [{room: count for room, (count, _) in each.items()} for each in (least, found, most)]
    rooms = counts[0].keys() | counts[1].keys()
    is_within = all(
        counts[0].get(room, 0) <= counts[1].get(room, 0) <= counts[2].get(room, 0) for room in rooms
    )
    if least == most or not is_within:
        world.trouble.append(f"{device.name} folds {found} of {AGE_S} s, not {least} to {most}")


def check_rest(world: World) -> Iterator[str]:
    """Yield what devices still fold that have taken in nothing for long: it is too old."""
    for device in world.running() if world.scenario.keyed else ():
        least_us = 2 * AGE_US + world.scenario.commit_s * SECOND_US
        folded = sorted(device.core.results.local()[LATELY])
        if folded and world.now_us - max(device.taken_us, device.begun_us) > least_us:
            yield f"{device.name} has taken in nothing for long, and folds samples of {folded}"


def _lately(device: VirtualDevice, from_us: int) -> Values:
    """Return what a device was first given since then."""
    order, order_us = device.order, device.order_us
    first = len(order)
    while first and order_us[first - 1] >= from_us:
        first -= 1
    if first == len(order):
        return {}
    known = set(order[:first])
    values: dict[str, list[int]] = defaultdict(list)
    for line in dict.fromkeys(order[first:]):
        if line not in known:
            values[line.room].append(line.value)
    return {room: (len(each), sum(each)) for room, each in values.items()}
