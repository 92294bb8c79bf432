"""Variables with keys, and readings that are collected without a handler."""

import pytest

from crdts import BoundedLWWSet, Counter
from lasp_edge import Program, Update, folds
from lasp_edge.folds.columns import Column, Op
from lasp_edge.folds.fold import Fold
from lasp_edge.folds.numbers import Resolution
from lasp_edge.folds.packed import packed_top
from lasp_edge.language.arguments import checked_key
from lasp_edge.language.updates import Mutation, run_handlers
from tests.lasp_edge.support_programs import basics, event


def by_room(**changed):
    program = Program("p")
    program.event("temperature", resolution="0.01")
    keyed = {"key": lambda event: event.tags["room"]} | changed
    return program, program.declare_dynamic(BoundedLWWSet(bound=5), "samples", **keyed)


def test_a_change_of_a_variable_with_keys_says_its_key():
    program, samples = by_room()

    @program.on_event("temperature")
    def sampled(event, update):
        update(samples, BoundedLWWSet.add, event.value, event.time_us)

    changes = run_handlers(program.plan(), event(room="attic"))
    assert changes == [Mutation("samples", "add", (2150, 40_000_000), "attic")]
    assert run_handlers(program.plan(), event(room=""))[0].key == ""
    for wrong, error in (({}, KeyError), ({"room": "a\nb"}, ValueError)):
        with pytest.raises(error):
            run_handlers(program.plan(), event(**wrong))


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (5, "text of at most"),
        (None, "text of at most"),
        ("x" * 256, "at most 255 B"),
        ("ü" * 128, "at most 255 B"),
        ("a\x1fb", "control characters"),
    ],
)
def test_a_key_that_is_not_valid_is_refused_and_says_whose_it_is(given, reason):
    with pytest.raises(ValueError, match=f"the key of variable 'samples' must .*{reason}"):
        checked_key(lambda _: given, "variable 'samples'")(event())
    assert checked_key(lambda _: "ü" * 127 + "x", "x")(event()) == "ü" * 127 + "x"


def test_a_variable_without_keys_says_the_empty_one():
    program, *_ = basics()
    assert [change.key for change in run_handlers(program.plan(), event())] == [""]


def test_a_change_of_a_variable_with_keys_needs_an_event():
    program, samples = by_room()
    with pytest.raises(ValueError, match="'samples' has keys, and there is no event"):
        Update(program.plan())(samples, "add", 1, 1)


def test_keys_and_their_version_are_part_of_the_streams():
    streams = set()
    for changed in ({}, {"version": 2}, {"key": None}, {"key": None, "version": 2}):
        program, samples = by_room(**changed)
        program.fold_dynamic(program.fold(samples, folds.mean(), "here"), "everywhere")
        streams |= {
            program.plan().local_folds["here"].stream,
            program.plan().dynamic_folds["everywhere"].stream,
        }
        assert program.plan().dynamic_folds["everywhere"].keyed == ("key" not in changed)
    assert len(streams) == 8


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"key": "room"}, "key must be a function"),
        ({"version": 0}, "version must be a whole number from 1"),
        ({"version": True}, "version must be"),
        ({"version": "2"}, "version must be"),
    ],
)
def test_a_wrong_key_is_refused_at_once(changed, reason):
    with pytest.raises(ValueError, match=reason):
        by_room(**changed)


def test_only_bounded_sets_have_keys():
    program = Program("p")
    program.event("temperature")
    with pytest.raises(ValueError, match=r"declare 'n': key= is for a BoundedLWWSet, not"):
        program.declare_dynamic(Counter(), "n", key=lambda event: "")
    assert program.plan().variables == {}


def test_declaring_again_with_another_key_is_refused():
    def key(event):
        return event.tags["room"]

    program, samples = by_room(key=key)
    again = program.declare_dynamic(BoundedLWWSet(bound=5), "samples", key=key)
    assert again is samples
    for changed in ({"key": lambda event: ""}, {"key": None}, {"key": key, "version": 2}):
        with pytest.raises(ValueError, match="declared twice, differently"):
            program.declare_dynamic(BoundedLWWSet(bound=5), "samples", **changed)


def test_an_event_is_collected_into_several_variables_in_order():
    program, temperature, samples = basics()
    other = program.declare_dynamic(BoundedLWWSet(max_age_s=5), "other")
    assert program.plan().collections.get("temperature", ()) == ()
    assert program.collect(temperature, into=samples) is samples
    program.collect("temperature", into=other)
    program.collect(temperature, into=samples)
    assert program.plan().collections.get("temperature", ()) == (samples, other)
    assert program.plan().collections.get("humidity", ()) == ()


def test_collecting_says_which_resolution_a_variable_has():
    program = Program("p")
    program.event("temperature", resolution="0.01")
    humidity = program.event("humidity", resolution="0.5")
    samples = program.declare_dynamic(BoundedLWWSet(bound=3), "samples")
    with pytest.raises(ValueError, match="which event does it measure"):
        program.plan()
    program.collect(humidity, into=samples)
    assert program.plan().resolutions["samples"] == Resolution("0.5")
    program.collect("temperature", into=samples)
    with pytest.raises(ValueError, match="which event does it measure"):
        program.plan()


def test_what_cannot_collect_is_refused():
    program, temperature, samples = basics()
    program.event("humidity", resolution="0.5")
    average = program.fold(samples, folds.mean(), "average")
    shared = program.declare(BoundedLWWSet(bound=3), "shared", measures="temperature")
    count = program.declare_dynamic(Counter(), "count")
    measured = program.declare_dynamic(BoundedLWWSet(bound=3), "m", measures="temperature")
    for into in (average, shared, count):
        with pytest.raises(ValueError, match="must be a dynamic BoundedLWWSet"):
            program.collect(temperature, into=into)
    with pytest.raises(ValueError, match="'m' measures 'temperature', whose resolution"):
        program.collect("humidity", into=measured)
    with pytest.raises(ValueError, match="declares no event 'pressure'"):
        program.collect("pressure", into=samples)
    with pytest.raises(ValueError, match="is not a variable of program"):
        program.collect(temperature, into=basics()[2])
    assert program.plan().collections == {}


def test_a_handler_may_say_another_resolution_than_what_is_collected():
    program = Program("p")
    temperature = program.event("temperature", resolution="0.01")
    humidity = program.event("humidity", resolution="0.5")
    samples = program.declare_dynamic(BoundedLWWSet(bound=3), "samples", measures=temperature)
    program.collect(temperature, into=samples)

    @program.on_event(humidity)
    def damp(event, update):
        update(samples, BoundedLWWSet.add, event.value, event.time_us)

    assert program.plan().resolutions["samples"] == Resolution("0.01")


def test_sketches_of_one_name_and_several_sizes_do_not_stand_in_one_program():
    class Best(Fold):
        name, parts = "best", ("count",)

        def __init__(self, size):
            self.columns = (Column("best", Op.TOP, size=size),)
            self.parameters = str(size)

        def lift(self, value, time_us=0):
            return (packed_top([value]),)

        def lower(self, partial, resolution):
            return {"count": len(partial[0]) // 4}

    program, _, samples = basics()
    program.fold(samples, Best(3), "three")
    program.fold(samples, Best(3), "three again")
    with pytest.raises(ValueError, match=r"'best' is a top of size 3 elsewhere .* of size 4 here"):
        program.fold(samples, Best(4), "four")
