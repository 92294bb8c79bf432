"""An agent that is to end once it is done ends when it knows the fleet's values."""

from crdts import BoundedLWWSet
from device_agent.agent.ending import LONGEST_US, Ending
from lasp_edge import Program, folds
from simulations.fleet import Fleet

DEVICES = ("pi-0", "pi-1", "pi-2")


def values():
    """A program without a window: nothing has to land."""
    program = Program("ending")
    warm = program.event("warm", resolution="1")
    last = program.declare_dynamic(BoundedLWWSet(bound=9), "last", measures=warm)
    program.collect(warm, into=last)
    mean = program.fold_dynamic(program.fold(last, folds.mean(), "here"), "mean")
    most = program.fold_dynamic(program.fold(last, folds.max(), "most here"), "most")
    program.combine("above", lambda most, mean: most - mean, most, mean, resolution="1")
    return program.plan()


def test_each_ends_when_it_knows_the_values_of_all():
    fleet = Fleet(values(), size=3, seed=7)
    for number, device in enumerate(DEVICES):
        fleet.step(4)
        fleet.read(device, "warm", 30.0 * number)
    endings, ended = {}, {}
    for device in fleet.running():
        device.durable.core.handle_end()
        endings[device.name] = Ending(device.durable.core, wanted=True)
    for _ in range(LONGEST_US // 1_000_000):
        for device in [name for name in endings if endings[name].is_over(fleet.now_us)]:
            ended[device] = fleet.results("above")[device][""].devices
            fleet.stop(device)
            del endings[device]
        fleet.step()
    assert ended == dict.fromkeys(DEVICES, 3)
    fleet.close()
