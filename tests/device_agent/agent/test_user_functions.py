"""A function of the user's that fails is counted with its place, and all else goes on."""

import json
import math
import sys

import pytest

from device_agent.agent.settings import Settings
from device_agent.agent.sources.mapping import FieldMapping
from device_agent.console.own_windows import own_windows
from lasp_edge import Program, folds
from lasp_edge.folds.columns import Column, Op
from lasp_edge.folds.fold import Fold
from lasp_edge.units import SECOND_US
from tests.device_agent.agents import NOW_US, Device
from tests.lasp_edge.support_programs import averaged


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
    made = averaged("failing", folds.count())
    made.fold_dynamic(made.fold(made.samples, Unprintable(), "broken"), "nowhere")
    device = Device(tmp_path, made.plan())
    device.read([20.0, 21.0])
    device.tick(20)
    values = device.core.report()["values"]
    assert (values["broken"]["parts"], values["broken"]["n"]) == ({}, 2)
    assert values["everywhere"]["parts"] == {"count": 2}
    assert count_of(device, "failed: fold broken: RuntimeError: no value (") > 0


class Squares(Fold):
    """A fold whose column two values of a billion fill, and one fits."""

    name, parts = "squares", ("total",)
    columns = (Column("total", Op.SUM),)

    def lift(self, value, time_us=0):
        return (value * value * 3,)

    def lower(self, partial, resolution):
        return {"total": partial[0]}


@pytest.mark.parametrize("where", [None, lambda event, at: True], ids=["plain", "filtered"])
def test_a_column_that_is_full_costs_its_window_alone_the_reading(tmp_path, where):
    made = Program("full")
    temperature = made.event("temperature")
    made.window("squares", source=temperature, fold=Squares(), size_s=60, where=where)
    made.window("number", source=temperature, fold=folds.count(), size_s=60)
    device = Device(tmp_path, made.plan())
    for value in (10**9, 10**9 + 1):
        device.read([value])
        device.tick()
    assert device.counted["accepted"] == 2
    assert device.counted["failed: window squares: the partial is out of range"] == 1
    panes = device.core.panes.memory.entries.values()
    assert sorted(entry.partial for entry in panes) == [(2,), (3 * 10**18,)]


def test_a_handler_of_texts_is_given_the_text(tmp_path):
    made, seen = Program("texts"), []
    made.on_event(made.event("op", text=True))(lambda event, update: seen.append(event.value))
    device = Device(tmp_path, made.plan())
    device.take(["bob"], [NOW_US], [{}], name="op")
    device.tick()
    assert seen == ["bob"]


class Strange(Fold):
    """A fold of the user's own that gives what no JSON has, as soon as it has two samples."""

    name, parts = "strange", ("x",)
    columns = (Column("n", Op.SUM),)

    def __init__(self, gives):
        self.gives = gives

    def lift(self, value, time_us=0):
        return (1,)

    def lower(self, partial, resolution):
        if partial[0] < 2:
            return {"x": 0}
        return self.gives() if callable(self.gives) else {"x": self.gives}


STRANGE = {
    "unprintable": 10**5_000,
    "beyond a double": 10**400,
    "nan": math.nan,
    "infinity": -math.inf,
    "bytes": b"\xff",
    "a set": {1},
    "complex": 1j,
    "None": lambda: None,
    "exit": sys.exit,
}


@pytest.mark.parametrize("gives", STRANGE.values(), ids=STRANGE)
def test_a_value_that_json_cannot_say_takes_no_other_along(tmp_path, gives):
    made = averaged("failing", folds.count())
    made.fold_dynamic(made.fold(made.samples, Strange(gives), "broken"), "nowhere")
    made.window("strange", source=made.temperature, fold=Strange(gives), size_s=60)
    made.window("sound", source=made.temperature, fold=folds.count(), size_s=60)
    plan = made.plan()
    device = Device(tmp_path, plan, settings=Settings(results_us=SECOND_US))
    device.read([20.0, 21.0], [NOW_US, NOW_US + 1])
    device.tick(20)
    values = json.loads(json.dumps(device.core.report(), allow_nan=False))["values"]
    assert (values["broken"]["parts"], values["nowhere"]["parts"]) == ({}, {})
    assert values["everywhere"]["parts"] == {"count": 2}
    told = {topic: payload for topic, payload, *_ in device.sent if "/out/" in topic}
    (everywhere,) = [json.loads(text) for topic, text in told.items() if "everywhere" in topic]
    assert everywhere["parts"] == {"count": 2}
    shown = {name: own_windows(device.store, plan, plan.windows[name], 1) for name in plan.windows}
    ((strange,), (sound,)) = shown.values()
    assert sound.plain(plan.windows["sound"])["parts"] == {"count": 2}
    plain = strange.plain(plan.windows["strange"])
    assert (plain["parts"], plain["n"]) == ({"x": None}, 2)
    assert plain["failed"].startswith(("ValueError: lower gives ", "SystemExit"))


def test_a_fold_whose_lower_gives_nothing_is_refused_by_name():
    class Nothing(Strange):
        def lower(self, partial, resolution):
            return None

    made = Program("failing")
    with pytest.raises(ValueError, match="lower gives None, not"):
        made.window("w", source=made.event("t"), fold=Nothing(0), size_s=60)


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
    why = "KeyError: 'room': temperature has no such tag; use --with-tag room=TEXT or tags.get("
    assert count_of(device, f"refused: program: {why}") == 1


@pytest.mark.parametrize(
    ("tags", "why"),
    [
        ({"room": "data.place"}, '--tag looked for "data.place", the message has "ts", "tempe'),
        ({}, "--tag room=FIELD, {room} in a topic or --with-tag room=TEXT gives it"),
    ],
)
def test_a_tag_that_a_message_lacks_is_named_with_the_field_that_was_looked_for(
    tmp_path, tags, why
):
    made = Program("p")
    temperature = made.event("temperature")
    room = lambda event: event.tags["room"]  # noqa: E731
    made.window("by_room", source=temperature, fold=folds.mean(), size_s=60, key=room)
    device = Device(tmp_path, made.plan())
    mapping = FieldMapping(["temperature"], time="ts", tags=tags)
    record = {"ts": NOW_US / SECOND_US, "temperature": 20.0, "data": {"location": "attic"}}
    device.core.hold(mapping.batch("s", [record]), NOW_US)
    device.tick()
    assert count_of(device, f'refused: program: MissingTagError: no tag "room": {why}') == 1
