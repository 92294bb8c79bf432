"""Programs: what both listings, their handlers, resolutions, windows and streams mean."""

from math import gcd

import pytest

from crdts import BoundedLWWSet, Counter, Pair
from lasp_edge import Program, folds
from lasp_edge.examples import greenhouse, talk
from lasp_edge.folds.columns import Column, Op
from lasp_edge.folds.numbers import Refused, Resolution
from lasp_edge.language.updates import Mutation, Update, run_handlers
from tests.lasp_edge.support_programs import Mean2, basics, event

# Both listings


def as_in_the_design(name):
    program, _, samples = basics(name)
    local = program.fold(samples, folds.mean(), "local_average")
    program.fold_dynamic(local, "global_average")
    return program


def as_in_the_talk(name):
    program = Program(name)
    temperature = program.event("temperature", resolution="0.01")
    samples = program.declare_dynamic(BoundedLWWSet(bound=100), "samples")
    local_average = program.declare_dynamic(Pair(Counter(), Counter()), "local_average")
    global_average = program.declare(Pair(Counter(), Counter()), "global_average")

    @program.on_event(temperature)
    def sampled(event, update):
        update(samples, ("add", event.value, event.time_us))

    program.fold(samples, folds.mean, local_average)
    program.fold_dynamic(local_average, folds.mean, global_average)
    return program


def ops(plan):
    return {name: column.op for name, column in plan.columns.items()}


def test_both_listings_mean_the_same():
    design, listing = as_in_the_design("p").plan(), as_in_the_talk("p").plan()
    here, there = design.dynamic_folds["global_average"], listing.dynamic_folds["global_average"]
    assert here.stream == there.stream
    assert here.source.stream == there.source.stream
    assert (here.name, here.source.name) == (there.name, there.source.name)
    assert run_handlers(design, event()) == run_handlers(listing, event())
    assert set(design.published_folds) == set(listing.published_folds) == {"local_average"}
    assert design.shared_variables == listing.shared_variables == {}
    assert design.columns == listing.columns
    assert ops(design) == {"count": Op.SUM, "total_q": Op.SUM}


def test_the_example_modules_are_the_two_listings():
    for program in (greenhouse.program, talk.program):
        average = program.plan().dynamic_folds["global_average"]
        assert average.source.name == "local_average"
        assert average.fold.columns_named == ("count", "total_q")
        assert average.source.source.bottom.bound == 100
        assert run_handlers(program.plan(), event()) == [
            Mutation("samples", "add", (2150, 40_000_000))
        ]
    plan = greenhouse.program.plan()
    window = plan.windows["temperature_by_room"]
    assert (window.size_us, window.slide_us, window.span_us) == (60_000_000, 10_000_000, 10_000_000)
    assert plan.functions.key(window.name, event(room="attic")) == "attic"


def test_a_dynamic_fold_is_declared_with_its_fold_or_without():
    streams = set()
    for way in (
        lambda program, local: program.fold_dynamic(local, "all"),
        lambda program, local: program.fold_dynamic(local, target="all"),
        lambda program, local: program.fold_dynamic(local, folds.mean, "all"),
        lambda program, local: program.fold_dynamic(local, fold=folds.mean(), target="all"),
        lambda program, local: program.fold_dynamic(
            local, program.declare(Pair(Counter(), Counter()), "all")
        ),
    ):
        program, _, samples = basics()
        way(program, program.fold(samples, folds.mean(), "here"))
        streams.add(program.plan().dynamic_folds["all"].stream)
    assert len(streams) == 1


# Handlers


def test_values_that_handlers_add_are_quantised():
    program, _, _ = basics()
    (change,) = run_handlers(program.plan(), event(value=21.567))
    assert change == Mutation("samples", "add", (2157, 40_000_000))
    assert run_handlers(program.plan(), event("other")) == []
    assert {name: len(each) for name, each in program.plan().functions.handlers.items()} == {
        "temperature": 1
    }


def test_handlers_run_in_the_order_of_declaration():
    program, temperature, samples = basics()

    @program.on_event(temperature)
    def doubled(event, update):
        update(samples, "add", event.value * 2, event.time_us)

    changes = run_handlers(program.plan(), event())
    assert [change.arguments[0] for change in changes] == [2150, 4300]


def test_a_handler_that_adds_no_number_is_refused():
    program, temperature, samples = basics()

    @program.on_event(temperature)
    def broken(event, update):
        update(samples, "add", None, event.time_us)

    with pytest.raises(Refused, match="missing value"):
        run_handlers(program.plan(), event())


def test_counters_take_their_arguments_as_they_are():
    program, temperature, _ = basics()
    count = program.declare(Counter(), "count")

    @program.on_event(temperature)
    def counted(event, update):
        update(count, Counter.increment)
        update(count, "decrement", 3)

    assert run_handlers(program.plan(), event())[1:] == [
        Mutation("count", "increment", ()),
        Mutation("count", "decrement", (3,)),
    ]
    assert set(program.plan().shared_variables) == {"count"}


def change(name, mutator, *arguments):
    program, _, samples = basics()
    program.declare(Counter(), "count")
    program.fold_dynamic(program.fold(samples, folds.mean(), "local"), "global")
    plan = program.plan()
    Update(plan)(plan.variables[name], mutator, *arguments)


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (("local", "add", 1, 1), "'local' is derived by a fold"),
        (("global", "increment", 1), "'global' is derived by a fold"),
        (("samples", "increment", 1), r"\(BoundedLWWSet\) has no mutator 'increment'"),
        (("samples", "_part", 1), "no mutator '_part'"),
        (("samples", "copy"), "no mutator 'copy'"),
        (("samples", "adopt"), "no mutator 'adopt'"),
        (("samples", "add_many", (1,), (1,)), "no mutator 'add_many'"),
        (("samples", "", 1, 1), "no mutator ''"),
        (("samples", "bound", 1), "no mutator 'bound'"),
        (("samples", "add", 21.5), "missing a required argument: 'time_us'"),
        (("samples", "add", 21.5, 1, 2, 3), "too many positional arguments"),
        (("count", "add", 1, 1), r"\(PNCounter\) has no mutator 'add'"),
    ],
)
def test_an_update_that_cannot_be_done_is_refused(asked, why):
    with pytest.raises(ValueError, match=why):
        change(*asked)


def test_derived_variables_refuse_updates_also_when_declared_first():
    plan = as_in_the_talk("p").plan()
    for name in ("local_average", "global_average"):
        with pytest.raises(ValueError, match="derived by a fold"):
            Update(plan)(plan.variables[name], "increment", 1)


def test_a_variable_of_another_program_is_refused():
    program, temperature, _ = basics()
    _, _, foreign = basics("other")

    @program.on_event(temperature)
    def strays(event, update):
        update(foreign, "add", event.value, event.time_us)

    with pytest.raises(ValueError, match="not a variable of program 'p'"):
        run_handlers(program.plan(), event())


# Resolution


def two_events():
    program = Program("p")
    program.event("temperature", resolution="0.01")
    return program, program.event("humidity", resolution="0.5")


def test_resolution_is_that_of_the_only_event():
    program = Program("p")
    program.event("temperature", resolution="0.01")
    program.declare_dynamic(BoundedLWWSet(bound=3), "samples")
    assert program.plan().resolutions["samples"] == Resolution("0.01")


def test_resolution_can_be_said():
    for by_name in (True, False):
        program, humidity = two_events()
        measures = "humidity" if by_name else humidity
        program.declare_dynamic(BoundedLWWSet(bound=3), "samples", measures=measures)
        assert program.plan().resolutions["samples"] == Resolution("0.5")


def test_resolution_is_that_of_all_events_where_they_have_one():
    program = Program("p")
    for name in ("inside", "outside"):
        program.event(name, resolution="0.01")
    program.declare_dynamic(BoundedLWWSet(bound=3), "samples")
    assert program.plan().resolutions["samples"] == Resolution("0.01")


def test_resolution_that_several_events_leave_open_must_be_said():
    program, humidity = two_events()
    samples = program.declare_dynamic(BoundedLWWSet(bound=3), "samples")

    @program.on_event(humidity)
    def sampled(event, update):
        update(samples, "add", event.value, event.time_us)

    needed = (
        r"'samples': which event does it measure\? .* \(humidity 0.5, temperature 0.01\); write "
        r"declare_dynamic\(..., 'samples', measures='humidity'\)"
    )
    with pytest.raises(ValueError, match=needed):
        program.plan()


def test_an_event_declared_later_reopens_the_question():
    program = Program("p")
    program.event("temperature", resolution="0.01")
    program.declare_dynamic(BoundedLWWSet(bound=3), "samples")
    assert program.plan().resolutions["samples"] == Resolution("0.01")
    program.event("humidity", resolution="0.5")
    with pytest.raises(ValueError, match="which event"):
        program.plan()


# Windows and streams


def windowed(program="p", event="temperature", resolution="0.01", name="w", **window):
    made = Program(program)
    made.event(event, resolution=resolution)
    window = {"fold": folds.mean(), "size_s": 60, "slide_s": 10} | window
    return made.window(name, source=event, **window)


def test_stream_changes_with_everything_that_gives_a_partial_its_meaning():
    streams = [
        windowed().stream,
        windowed(program="q").stream,
        windowed(name="v").stream,
        windowed(event="humidity").stream,
        windowed(slide_s=5).stream,
        windowed(version=2).stream,
        windowed(fold=folds.sum()).stream,
        windowed(fold=Mean2()).stream,
        windowed(fold=Mean2(version=2)).stream,
        windowed(fold=Mean2(parameters="trimmed")).stream,
        windowed(resolution="0.1").stream,
    ]
    assert len(set(streams)) == len(streams)
    assert all(-(2**63) <= stream < 2**63 for stream in streams)


def test_stream_stays_when_the_size_changes_at_the_same_span():
    assert windowed(size_s=60).stream == windowed(size_s=70).stream
    assert windowed(size_s=50, slide_s=20).stream == windowed(size_s=60, slide_s=10).stream
    assert windowed(resolution="1e-2").stream == windowed(resolution="0.010").stream


def test_stream_of_a_fold_changes_with_its_meaning():
    def streams(name="p", fold=None, target="local", source="samples", resolution="0.01"):
        program = Program(name)
        program.event("temperature", resolution=resolution)
        samples = program.declare_dynamic(BoundedLWWSet(bound=5), source)
        local = program.fold(samples, fold or folds.mean(), target)
        program.fold_dynamic(local, "global")
        return program.plan().local_folds[target].stream, program.plan().dynamic_folds[
            "global"
        ].stream

    different = [
        streams(),
        streams(name="q"),
        streams(fold=folds.sum()),
        streams(target="other"),
        streams(source="others"),
        streams(resolution="0.1"),
    ]
    assert len({stream for pair in different for stream in pair}) == 2 * len(different)


def test_a_window_and_a_fold_of_one_meaning_are_two_streams():
    program = as_in_the_design("p")
    window = program.window("w", source="temperature", fold=folds.mean(), size_s=60)
    assert window.stream != program.plan().local_folds["local_average"].stream


@pytest.mark.parametrize(
    ("size_s", "slide_s", "span_us"),
    [(60, 10, 10_000_000), (50, 20, 10_000_000), (60, None, 60_000_000), (0.5, 0.2, 100_000)],
)
def test_a_pane_is_the_longest_span_that_no_boundary_cuts(size_s, slide_s, span_us):
    window = windowed(size_s=size_s, slide_s=slide_s)
    assert window.span_us == span_us == gcd(window.size_us, window.slide_us)


def test_end_of_the_last_window_that_holds_a_time():
    window = windowed(size_s=50, slide_s=20)
    for time_us in range(-100_000_000, 100_000_000, 7_000_001):
        starts = range(-200_000_000, 200_000_000, 20_000_000)
        ends = [start + 50_000_000 for start in starts if start <= time_us < start + 50_000_000]
        assert window.end_of_last(time_us) == max(ends)


def test_one_definition_of_a_column_a_program():
    class Least(Mean2):
        name, columns = "least", (Column("count", Op.MIN), Column("total_q", Op.SUM))

    class Upper(Mean2):
        name, columns = "upper", (Column("Count", Op.SUM), Column("total_q", Op.SUM))

    program, temperature, _ = basics()
    program.window("a", source=temperature, fold=folds.mean(), size_s=60)
    program.window("b", source=temperature, fold=folds.count(), size_s=60)
    for fold in (Least(), Upper()):
        with pytest.raises(ValueError, match="rename a part"):
            program.window("c", source=temperature, fold=fold, size_s=60)
    assert ops(program.plan()) == {"count": Op.SUM, "total_q": Op.SUM}
