"""A plan travels: what it says stays, and the user's functions stay behind."""

import pickle
from dataclasses import FrozenInstanceError

import pytest

from crdts import BoundedLWWSet, Counter, GSet
from lasp_edge import Program, Update, folds
from lasp_edge.dataflow import cardinality
from lasp_edge.folds.columns import Column, Op
from lasp_edge.folds.fold import Fold
from lasp_edge.folds.numbers import Resolution
from lasp_edge.language.declarations import Tier
from lasp_edge.language.updates import run_handlers
from tests.lasp_edge.support_programs import event


def house():
    """Return a plan with all that a program can declare, local functions and a local class."""

    class Warmest(Fold):
        name, parts = "warmest", ("warmest",)
        columns = (Column("warmest_q", Op.MAX),)

        def lift(self, value, time_us=0):
            return (value,)

        def lower(self, partial, resolution):
            return {"warmest": partial[0]}

    program = Program("house")
    temperature = program.event("temperature", resolution="0.01", unit="°C")
    samples = program.declare_dynamic(
        BoundedLWWSet(bound=3), "samples", key=lambda event: event.tags["room"], version=2
    )
    program.collect(temperature, into=samples)
    count, rooms = program.declare(Counter(), "count"), program.declare(GSet(), "rooms")
    program.map(rooms, lambda room: room[:1], "floors")

    @program.on_event(temperature)
    def counted(event, update):
        update(count, Counter.increment)

    @program.on_threshold(rooms, cardinality(2))
    def two(value, update):
        update(count, Counter.increment)

    both = folds.struct(own=Warmest(), spread=folds.histogram([20]), p=folds.quantile(0.5))
    program.fold_dynamic(program.fold(samples, both, "here"), "everywhere")
    program.window("minute", source=temperature, fold=folds.mean(), size_s=60)
    program.window("own", source=temperature, fold=Warmest(), size_s=60, key=lambda event: "all")
    return program.plan()


def declared_by(plan):
    """Return what has to be the same wherever a plan is."""
    folded = [*plan.windows.values(), *plan.local_folds.values(), *plan.dynamic_folds.values()]
    return (
        [(f.name, f.stream, f.keyed, f.resolution, f.fold.columns, f.fold.parts) for f in folded],
        [f.fold.fingerprint(f.resolution) for f in folded],
        [(v.name, v.bottom, v.dynamic, v.keyed, v.version) for v in plan.variables.values()],
        {name: [v.name for v in several] for name, several in plan.collections.items()},
        (plan.name, plan.events, plan.resolutions, plan.derivations, plan.awaited, plan.columns),
        (set(plan.published_folds), set(plan.shared_variables), set(plan.own_variables)),
        plan.followed,
    )


def test_a_pickled_plan_says_the_same():
    plan = house()
    again = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(plan))))
    assert declared_by(again) == declared_by(plan)
    local = again.local_folds["here"]
    assert local is again.dynamic_folds["everywhere"].source
    assert local.source is again.variables["samples"]
    assert local.fold.combine((1, 2, 3, b""), local.fold.zero) == (1, 2, 3, b"")


def test_built_in_folds_work_where_a_plan_was_sent():
    mean = pickle.loads(pickle.dumps(house())).windows["minute"].fold
    assert mean.lower(mean.lift_column([10, 20], [0, 0]), Resolution("1")) == {"mean": 15.0}


def test_functions_left_behind_say_so_when_they_are_asked_for():
    plan = pickle.loads(pickle.dumps(house()))
    for use in (
        lambda: run_handlers(plan, event()),
        lambda: plan.functions.key("minute", event()),
        lambda: plan.functions.reached,
    ):
        with pytest.raises(RuntimeError, match="of program 'house' are not here: a pickled plan"):
            use()
    own = plan.windows["own"].fold
    for use in (lambda: own.lift(1), lambda: own.lower((1,), Resolution("1"))):
        with pytest.raises(RuntimeError, match="the code of fold warmest is not here"):
            use()


def test_keys_are_asked_in_one_way_whether_there_are_any_or_not():
    plan = house()
    assert plan.functions.key("minute", event()) == ""
    assert plan.functions.key("own", event()) == "all"
    assert plan.functions.key("samples", event(room="attic")) == "attic"


def test_a_plan_stays_as_it_was_made():
    program = Program("p")
    program.event("temperature")
    plan = program.plan()
    program.window("later", source="temperature", fold=folds.mean(), size_s=1)
    assert plan.windows == {}
    assert set(program.plan().windows) == {"later"}
    with pytest.raises(FrozenInstanceError):
        plan.name = "q"


def test_each_part_says_where_it_runs():
    plan = house()
    assert plan.windows["minute"].runs_on == (Tier.DEVICE, Tier.CLOUD)
    assert plan.dynamic_folds["everywhere"].runs_on == (Tier.DEVICE, Tier.CLOUD)
    assert plan.local_folds["here"].runs_on == (Tier.DEVICE,)


def test_a_variable_of_another_plan_of_the_same_program_cannot_be_changed():
    plan, other = house(), house()
    with pytest.raises(ValueError, match="is not a variable of program 'house'"):
        Update(plan)(other.variables["count"], Counter.increment)


def test_an_event_in_place_of_a_variable_and_the_reverse_are_answered_with_what_was_meant():
    program = Program("house")
    heat = program.event("heat", resolution="1")
    seen = program.declare_dynamic(BoundedLWWSet(bound=5), "seen")
    with pytest.raises(ValueError, match="a variable is needed, and 'heat' is an event; samples ="):
        program.fold(heat, folds.mean(), "mean")
    with pytest.raises(ValueError, match="an event is needed, and 'seen' is a variable; collect"):
        program.collect(seen, into=heat)
