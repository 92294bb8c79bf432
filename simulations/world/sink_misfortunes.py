"""How each kind of fault befalls a sink: its process, its machine's power, its disk, its clock."""

from collections.abc import Callable

from simulations.world.device import VirtualDevice
from simulations.world.gateway import VirtualGateway
from simulations.world.lander_process import VirtualLanderProcess
from simulations.world.landing import BEATS
from simulations.world.links import TO_BROKER, LegMessage
from simulations.world.process_checks import check_twins
from simulations.world.scenario import ARCHIVE
from simulations.world.sinks import AnySink
from simulations.world.world import World

TWIN = "twin"
"""The key of a second gateway of one name."""
REPLAY_STEPS = 4
"""Steps between two times that a recording is played."""
RIGHT_AGAIN_STEPS = 25
"""Steps after which a gateway's clock that was set wrong is set right, every second time."""


def _any_sink(world: World) -> AnySink:
    return world.sinks[world.step_number % len(world.sinks)]


def _lander_crash(world: World, _device: VirtualDevice, steps: int) -> bool:
    _any_sink(world).crash(world.step_number + steps)
    return True


def _lander_slow(world: World, _device: VirtualDevice, steps: int) -> bool:
    _any_sink(world).slow_down(world.step_number, steps)
    return True


def _lander_cut(world: World, _device: VirtualDevice, steps: int) -> bool:
    _any_sink(world).cut_until = world.step_number + steps
    return True


def _former_lander(world: World, _device: VirtualDevice, steps: int) -> bool:
    sink = _any_sink(world)
    if world.former_plan is None:
        return False
    sink.run_program(world.former_plan)
    world.later(steps, sink.run_program)
    return True


def _archive_away(world: World, _device: VirtualDevice, steps: int) -> bool:
    *_, last = world.sinks
    last.cut_until = world.step_number + (steps if last.sink == ARCHIVE else 0)
    return last.sink == ARCHIVE


def _new_lake(world: World, _device: VirtualDevice, _amount: int) -> bool:
    sink = _any_sink(world)
    sink.lose_store()
    if not sink.lander.keeps_all:
        world.operator.repeat_all()
    return True


def _any_gateway(world: World) -> VirtualGateway | None:
    found = [sink for sink in world.sinks if isinstance(sink, VirtualGateway)]
    return found[world.step_number % len(found)] if found else None


def _any_process(world: World) -> VirtualGateway | VirtualLanderProcess | None:
    kinds = VirtualGateway | VirtualLanderProcess
    found = [sink for sink in world.sinks if isinstance(sink, kinds)]
    return found[world.step_number % len(found)] if found else None


def _power_lost(world: World, _device: VirtualDevice, calls: int) -> bool:
    sink = _any_process(world)
    if sink is not None:
        sink.power.calls = calls
    return sink is not None


def _gateway_torn(world: World, _device: VirtualDevice, operations: int) -> bool:
    gateway = _any_gateway(world)
    if gateway is not None:
        gateway.disk.fail(operations)
        world.later(1, gateway.disk.mend)
    return gateway is not None


def _gateway_old(world: World, _device: VirtualDevice, _amount: int) -> bool:
    sink = _any_process(world)
    if sink is None or not sink.go_back():
        return False
    world.operator.repeat_all()
    return True


def _gateway_jump(world: World, _device: VirtualDevice, seconds: int) -> bool:
    sink = _any_process(world)
    if sink is None:
        return False
    sink.clock.jump(seconds)
    if seconds % 2:
        world.later(RIGHT_AGAIN_STEPS, sink.clock.heal)
    return True


def _gateway_1970(world: World, _device: VirtualDevice, steps: int) -> bool:
    sink = _any_process(world)
    if sink is None:
        return False
    sink.clock.start_in_1970(world.now_us)
    sink.restart()
    world.later(steps, sink.clock.heal)
    return True


def _gateway_drift(world: World, _device: VirtualDevice, parts: int) -> bool:
    sink = _any_process(world)
    if sink is not None:
        sink.clock.drift(parts, world.now_us)
    return sink is not None


def _sink_dead(world: World, _device: VirtualDevice, steps: int) -> bool:
    *_, last = world.sinks
    last.crash(world.step_number + steps)
    return True


def _sink_away(world: World, _device: VirtualDevice, steps: int) -> bool:
    sink = _any_process(world)
    if sink is not None:
        sink.away_until = world.step_number + steps
    return sink is not None


def _sink_full(world: World, _device: VirtualDevice, steps: int) -> bool:
    sink = _any_process(world)
    if sink is not None:
        sink.full_until = world.step_number + steps
    return sink is not None


def _recorded_answers(world: World, _device: VirtualDevice, steps: int) -> bool:
    """Let somebody who recorded what sinks acknowledged play it to the devices, again and again."""

    def play() -> None:
        for topic, payload in world.recordings.answers:
            world.send(LegMessage(TO_BROKER, topic, payload))

    for after in range(1, steps, REPLAY_STEPS):
        world.later(after, play)
    return bool(world.recordings.answers)


def _hours(world: World, _device: VirtualDevice, steps: int) -> bool:
    world.fast_until = world.step_number + steps
    return True


def _twin(world: World, _device: VirtualDevice, steps: int) -> bool:
    """Let somebody set up a second gateway of one name."""
    first, seed = world.sinks[0], f"twin of {world.scenario.seed}"
    if TWIN in world.by_key or not isinstance(first, VirtualGateway):
        return False
    world.by_key[TWIN] = VirtualGateway(first.running, first.sink, first.terms, seed, world.now_us)
    world.later(steps, lambda: _part(world))
    return True


def _part(world: World) -> None:
    """Switch the twin off; by then all devices must have reported it."""
    twin = world.by_key.pop(TWIN)
    world.stores.add(twin.lander.lake)
    for device in world.running():
        check_twins(world, device, twin.sink)


def _kept_beat(world: World, device: VirtualDevice, _amount: int) -> bool:
    """Let the broker keep a beat, as if somebody had published it so."""
    beats = [each for each in world.recordings.devices if BEATS in each[0]]
    if not beats:
        return False
    world.broker.keep(*beats[-1])
    del device
    return True


OF_SINKS: dict[str, Callable[[World, VirtualDevice, int], bool]] = {
    "lander_crash": _lander_crash,
    "lander_slow": _lander_slow,
    "lander_cut": _lander_cut,
    "former_lander": _former_lander,
    "archive_away": _archive_away,
    "new_lake": _new_lake,
    "power_lost": _power_lost,
    "gateway_torn": _gateway_torn,
    "gateway_old": _gateway_old,
    "gateway_jump": _gateway_jump,
    "gateway_1970": _gateway_1970,
    "gateway_drift": _gateway_drift,
    "sink_dead": _sink_dead,
    "kept_beat": _kept_beat,
    "sink_away": _sink_away,
    "sink_full": _sink_full,
    "recorded_answers": _recorded_answers,
    "hours": _hours,
    "twin": _twin,
}
"""Kind -> how it befalls a sink."""
