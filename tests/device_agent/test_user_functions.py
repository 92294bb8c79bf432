"""A function of the user's that fails is counted with its place, and all else goes on."""

from crdts import BoundedLWWSet
from lasp_edge import Program, folds
from lasp_edge.folds.columns import Column, Op
from lasp_edge.folds.fold import Fold
from tests.device_agent.agents import NOW_US, Device


def count_of(device: Device, beginning: str) -> int:
    """Return what is counted under the one name that begins so; it ends with a place here."""
    (name,) = [name for name in device.counted if name.startswith(beginning)]
    assert name.partition(beginning)[2].rpartition(":")[0].endswith("test_user_functions.py")
    return device.counted[name]


class Unprintable(Fold):
    """A fold of the user's own that gives no value of two samples."""

    name, parts = "unprintable", ("n",)
    columns = (Column("n", Op.SUM),)

    def lift(self, value, time_us=0):
        return (1,)

    def lower(self, partial, resolution):
        if partial[0] > 1:
            raise RuntimeError("no value")
        return {"n": partial[0]}


def test_a_users_fold_that_gives_no_value_is_counted_and_the_others_have_theirs(tmp_path):
    made = Program("failing")
    temperature = made.event("temperature")
    samples = made.declare_dynamic(BoundedLWWSet(bound=5), "samples")
    made.collect(temperature, into=samples)
    made.fold_dynamic(made.fold(samples, Unprintable(), "broken"), "nowhere")
    made.fold_dynamic(made.fold(samples, folds.count(), "number"), "everywhere")
    device = Device(tmp_path, made.plan())
    device.read([20.0, 21.0])
    device.tick(20)
    values = device.core.report()["values"]
    assert (values["broken"]["parts"], values["broken"]["n"]) == ({}, 2)
    assert values["everywhere"]["parts"] == {"count": 2}
    assert count_of(device, "failed: fold broken: RuntimeError: no value (") > 0
    device.kill()


def test_a_users_handler_or_key_that_fails_refuses_its_reading_and_says_why(tmp_path):
    made = Program("failing")
    temperature = made.event("temperature")

    def room(event):
        return event.tags["room"]

    made.window("by_room", source=temperature, fold=folds.mean(), size_s=60, key=room)

    @made.on_event(temperature)
    def strict(event, _update):
        if event.value > 50:
            raise RuntimeError("too hot")

    device = Device(tmp_path, made.plan())
    device.read([20.0], [NOW_US], tags={"room": "attic"})
    device.read([60.0], [NOW_US + 1], tags={"room": "attic"})
    device.read([20.0], [NOW_US + 2])
    assert device.counted["accepted"] == 1
    assert count_of(device, "refused: program: RuntimeError: too hot (") == 1
    assert count_of(device, "refused: program: KeyError: 'room' (") == 1
    device.kill()
