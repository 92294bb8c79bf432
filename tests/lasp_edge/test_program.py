"""Programs: what both listings mean, and that a wrong definition is refused at once and whole."""

from math import gcd

import pytest

from crdts import BoundedLWWSet, Counter, GCounter, Pair, Product, Replica
from lasp_edge import Event, Program, Update, folds
from lasp_edge.declarations import Change, key_of
from lasp_edge.examples import greenhouse, talk
from lasp_edge.fold import Column, Fold, Op
from lasp_edge.numbers import Refused, Resolution
from lasp_edge.packed import packed_top


def event(name="temperature", value=21.5, **tags):
    return Event(name, value, 40_000_000, "pi-1", tags)


def basics(name="p", resolution="0.01", bound=100):
    """Return a program with one event, one set and a handler."""
    program = Program(name)
    temperature = program.event("temperature", resolution=resolution)
    samples = program.declare_dynamic(BoundedLWWSet(bound=bound), "samples")

    @program.on_event(temperature)
    def sampled(event, update):
        update(samples, BoundedLWWSet.add, event.value, event.time_us)

    return program, temperature, samples


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


def test_both_listings_mean_the_same():
    design, listing = as_in_the_design("p").validate(), as_in_the_talk("p").validate()
    here, there = design.dynamic_folds["global_average"], listing.dynamic_folds["global_average"]
    assert here.stream == there.stream
    assert here.source.stream == there.source.stream
    assert (here.name, here.source.name) == (there.name, there.source.name)
    assert design.run_handlers(event()) == listing.run_handlers(event())
    assert set(design.published_folds) == set(listing.published_folds) == {"local_average"}
    assert design.shared_variables == listing.shared_variables == {}
    assert design.columns() == listing.columns() == {"count": Op.SUM, "total_q": Op.SUM}


def test_the_example_modules_are_the_two_listings():
    for program in (greenhouse.program, talk.program):
        program.validate()
        average = program.dynamic_folds["global_average"]
        assert average.source.name == "local_average"
        assert average.fold.columns_named == ("count", "total_q")
        assert average.source.source.bottom.bound == 100
        assert program.run_handlers(event()) == [Change("samples", "add", (2150, 40_000_000))]
    window = greenhouse.program.windows["temperature_by_room"]
    assert (window.size_us, window.slide_us, window.span_us) == (60_000_000, 10_000_000, 10_000_000)
    assert window.key(event(room="attic")) == "attic"


# Handlers


def test_values_that_handlers_add_are_quantised():
    program, _, _ = basics()
    (change,) = program.run_handlers(event(value=21.567))
    assert change == Change("samples", "add", (2157, 40_000_000))
    assert program.run_handlers(event("other")) == []
    assert program.has_handlers("temperature")
    assert not program.has_handlers("other")
    assert len(program.handlers("temperature")) == 1


def test_handlers_run_in_the_order_of_declaration():
    program, temperature, samples = basics()

    @program.on_event(temperature)
    def doubled(event, update):
        update(samples, "add", event.value * 2, event.time_us)

    changes = program.run_handlers(event())
    assert [change.arguments[0] for change in changes] == [2150, 4300]


def test_a_handler_that_adds_no_number_is_refused():
    program, temperature, samples = basics()

    @program.on_event(temperature)
    def broken(event, update):
        update(samples, "add", None, event.time_us)

    with pytest.raises(Refused, match="missing value"):
        program.run_handlers(event())


def test_counters_take_their_arguments_as_they_are():
    program, temperature, _ = basics()
    count = program.declare(Counter(), "count")

    @program.on_event(temperature)
    def counted(event, update):
        update(count, Counter.increment)
        update(count, "decrement", 3)

    assert program.run_handlers(event())[1:] == [
        Change("count", "increment", ()),
        Change("count", "decrement", (3,)),
    ]
    assert set(program.shared_variables) == {"count"}


def change(name, mutator, *arguments):
    program, _, _ = basics()
    program.declare(Counter(), "count")
    program.fold(program.variables["samples"], folds.mean(), "local")
    program.fold_dynamic(program.variables["local"], "global")
    return program.change(program.variables[name], mutator, arguments)


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
    program = as_in_the_talk("p")
    for name in ("local_average", "global_average"):
        with pytest.raises(ValueError, match="derived by a fold"):
            program.change(program.variables[name], "increment", (1,))


def test_a_variable_of_another_program_is_refused():
    program, temperature, _ = basics()
    _, _, foreign = basics("other")

    @program.on_event(temperature)
    def strays(event, update):
        update(foreign, "add", event.value, event.time_us)

    with pytest.raises(ValueError, match="not a variable of program 'p'"):
        program.run_handlers(event())


# Resolution


def two_events():
    program = Program("p")
    program.event("temperature", resolution="0.01")
    program.event("humidity", resolution="0.5")
    samples = program.declare_dynamic(BoundedLWWSet(bound=3), "samples")
    return program, samples


def test_resolution_is_that_of_the_only_event():
    program = Program("p")
    program.event("temperature", resolution="0.01")
    samples = program.declare_dynamic(BoundedLWWSet(bound=3), "samples")
    assert program.resolution_of(samples) == Resolution("0.01")


def test_resolution_is_that_of_the_event_whose_handler_names_the_variable():
    program, samples = two_events()

    @program.on_event("humidity")
    def sampled(event, update):
        update(samples, "add", event.value, event.time_us)

    @program.on_event("temperature")
    def unrelated(event, update):
        pass

    assert program.validate().resolution_of(samples) == Resolution("0.5")


def test_resolution_is_found_through_an_inner_function():
    program, samples = two_events()

    @program.on_event("temperature")
    def sampled(event, update):
        [update(samples, "add", value, event.time_us) for value in (event.value,)]

    assert program.resolution_of(samples) == Resolution("0.01")


def test_resolution_can_be_said():
    program, _ = two_events()
    for measures in ("humidity", program.events["humidity"]):
        said = program.declare_dynamic(
            BoundedLWWSet(bound=3), f"said_{measures}"[:20], measures=measures
        )
        assert program.resolution_of(said) == Resolution("0.5")


def test_resolution_that_several_events_leave_open_must_be_said():
    program, samples = two_events()
    with pytest.raises(ValueError, match=r"which event does it measure\? .*measures"):
        program.validate()

    for name in ("temperature", "humidity"):

        @program.on_event(name)
        def sampled(event, update):
            update(samples, "add", event.value, event.time_us)

    program.fold(samples, folds.sum(), "local")
    with pytest.raises(ValueError, match=r"one of \['humidity', 'temperature'\]"):
        _ = program.local_folds


def test_an_event_declared_later_reopens_the_question():
    program = Program("p")
    program.event("temperature", resolution="0.01")
    samples = program.declare_dynamic(BoundedLWWSet(bound=3), "samples")
    assert program.validate().resolution_of(samples) == Resolution("0.01")
    program.event("humidity", resolution="0.5")
    with pytest.raises(ValueError, match="which event"):
        program.validate()


class Awkward:
    """Like an array: not even `==` can be asked."""

    def __eq__(self, other):
        raise ValueError("the truth value is ambiguous")

    __hash__ = None


AWKWARD = Awkward()


def test_resolution_is_found_beside_values_that_cannot_be_compared():
    program, samples = two_events()

    @program.on_event("temperature")
    def unrelated(event, update):
        return AWKWARD if event else late

    @program.on_event("humidity")
    def sampled(event, update):
        update(samples, "add", event.value, event.time_us)

    assert program.resolution_of(samples) == Resolution("0.5")
    late = 1


# Windows and streams


def windowed(program="p", event="temperature", resolution="0.01", name="w", **window):
    made = Program(program)
    made.event(event, resolution=resolution)
    window = {"fold": folds.mean(), "size_s": 60, "slide_s": 10} | window
    return made.window(name, source=event, **window)


class Mean2(Fold):
    """The built-in mean under a version of its own."""

    name, version = "mean_of_mine", 1
    columns, parts = folds.mean().columns, folds.mean().parts
    lift, lower = type(folds.mean()).lift, type(folds.mean()).lower

    def __init__(self, version=1, parameters=""):
        self.version, self.parameters = version, parameters


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
        return program.local_folds[target].stream, program.dynamic_folds["global"].stream

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
    assert window.stream != program.local_folds["local_average"].stream


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
    assert program.columns() == {"count": Op.SUM, "total_q": Op.SUM}


# Wrong definitions


def window(program, **changed):
    whole = {"name": "w", "source": "temperature", "fold": folds.mean(), "size_s": 60} | changed
    return program.window(whole.pop("name"), **whole)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"source": "humidity"}, "declares no event 'humidity'"),
        ({"source": None}, "declares no event None"),
        ({"source": []}, "declares no event"),
        ({"fold": "mean"}, "a fold such as"),
        ({"size_s": 0}, "seconds above 0"),
        ({"size_s": -1}, "seconds above 0"),
        ({"size_s": "60"}, "seconds above 0"),
        ({"size_s": True}, "seconds above 0"),
        ({"size_s": float("nan")}, "seconds above 0"),
        ({"size_s": float("inf")}, "seconds above 0"),
        ({"size_s": 1e300}, "seconds above 0"),
        ({"size_s": 10**400}, "seconds above 0"),
        ({"size_s": 1e-9}, "a microsecond is the least"),
        ({"slide_s": 0}, "seconds above 0"),
        ({"slide_s": 61}, "to the size"),
        ({"slide_s": 0.001}, "a slide from size / 10000"),
        ({"key": "room"}, "key must be a function of the event, not 'room'"),
        ({"version": "2"}, "version must be a whole number from 1"),
        ({"version": 0}, "version must be a whole number from 1"),
        ({"name": ""}, "a printable name"),
        ({"name": "a\nb"}, "a printable name"),
        ({"name": "\x1f"}, "a printable name"),
        ({"name": None}, "a printable name"),
        ({"name": "\N{GRINNING FACE}" * 17}, "1 to 64 bytes"),
        ({"name": "taken"}, "taken"),
        ({"name": "samples"}, "taken"),
    ],
)
def test_a_wrong_window_is_refused_and_leaves_nothing(changed, why):
    program, _, _ = basics()
    window(program, name="taken")
    before = program.columns()
    with pytest.raises(ValueError, match=why):
        window(program, **changed)
    assert set(program.windows) == {"taken"}
    assert program.columns() == before


WRONG = {
    "event twice": (lambda p: p.event("temperature"), "declared twice"),
    "event without a name": (lambda p: p.event(""), "a printable name"),
    "a float as resolution": (lambda p: p.event("x", resolution=0.01), "decimal text"),
    "a negative resolution": (lambda p: p.event("x", resolution="-1"), "from 1e-30"),
    "declare a number": (lambda p: p.declare(5, "x"), "a CRDT's bottom value is needed, not 5"),
    "declare a type": (lambda p: p.declare(Counter, "x"), "a CRDT's bottom value is needed"),
    "declare a value above bottom": (
        lambda p: p.declare(counted(), "x"),
        "a CRDT's bottom value is needed",
    ),
    "variable without a name": (lambda p: p.declare(Counter(), ""), "a printable name"),
    "shared after dynamic of another type": (
        lambda p: p.declare(Counter(), "samples"),
        "declared twice, differently",
    ),
    "shared after dynamic": (
        lambda p: p.declare(BoundedLWWSet(bound=100), "samples"),
        "declared twice, differently",
    ),
    "another bound": (
        lambda p: p.declare_dynamic(BoundedLWWSet(bound=9), "samples"),
        "twice, differently",
    ),
    "variable named as a window": (lambda p: p.declare(Counter(), "w"), "taken by a window"),
    "measures an unknown event": (
        lambda p: p.declare(Counter(), "x", measures="humidity"),
        "no event 'humidity'",
    ),
    "handler of an unknown event": (
        lambda p: p.on_event("humidity"),
        "declares no event 'humidity'",
    ),
    "handler of another program's event": (
        lambda p: p.on_event(Program("q").event("temperature")),
        "declares no event",
    ),
    "on_event without an event": (
        lambda p: p.on_event(lambda event, update: None),
        "declares no event",
    ),
    "handler that is no function": (
        lambda p: p.on_event("temperature")(5),
        "a function .* is needed, not 5",
    ),
    "fold of a name": (lambda p: p.fold("samples", folds.mean(), "x"), "not a variable of program"),
    "fold of a counter": (
        lambda p: p.fold(p.variables["n"], folds.mean(), "x"),
        "a dynamic BoundedLWWSet",
    ),
    "fold of a fold's target": (
        lambda p: p.fold(p.variables["local"], folds.mean(), "x"),
        "a dynamic BoundedLWWSet",
    ),
    "fold of a shared set": (
        lambda p: p.fold(p.variables["shared"], folds.mean(), "x"),
        "a dynamic BoundedLWWSet",
    ),
    "fold with a name as fold": (
        lambda p: p.fold(p.variables["samples"], "mean", "x"),
        "a fold such as",
    ),
    "target without a name": (
        lambda p: p.fold(p.variables["samples"], folds.mean(), ""),
        "a printable name",
    ),
    "target named as a window": (
        lambda p: p.fold(p.variables["samples"], folds.mean(), "w"),
        "taken by a window",
    ),
    "target of another fold": (
        lambda p: p.fold(p.variables["samples"], folds.mean(), "local"),
        "a fold already",
    ),
    "target that is a number": (
        lambda p: p.fold(p.variables["samples"], folds.mean(), 5),
        "not a variable",
    ),
    "mean into one counter": (
        lambda p: p.fold(p.variables["samples"], folds.mean(), "n"),
        "gives the columns",
    ),
    "fold into its own source": (
        lambda p: p.fold(p.variables["samples"], folds.count(), "samples"),
        "gives the columns",
    ),
    "min into a counter": (
        lambda p: p.fold(p.variables["samples"], folds.min(), "n"),
        "gives the columns",
    ),
    "mean into a product of one": (
        lambda p: p.fold(p.variables["samples"], folds.mean(), "flat"),
        "gives the columns",
    ),
    "fold_dynamic of a set": (
        lambda p: p.fold_dynamic(p.variables["samples"], "x"),
        "must be the target of a fold",
    ),
    "fold_dynamic of a name": (lambda p: p.fold_dynamic("local", "x"), "not a variable of program"),
    "fold_dynamic without a target": (lambda p: p.fold_dynamic(p.variables["local"]), "needed are"),
    "fold_dynamic with a fold as target": (
        lambda p: p.fold_dynamic(p.variables["local"], folds.mean()),
        "needed are",
    ),
    "fold_dynamic with too much": (
        lambda p: p.fold_dynamic(p.variables["local"], 1, 2, 3),
        "needed are",
    ),
    "fold_dynamic with another fold": (
        lambda p: p.fold_dynamic(p.variables["local"], folds.sum(), "x"),
        "holds partials of",
    ),
    "fold_dynamic into its source": (
        lambda p: p.fold_dynamic(p.variables["local"], "local"),
        "a fold already",
    ),
    "fold_dynamic into one counter": (
        lambda p: p.fold_dynamic(p.variables["local"], "n"),
        "gives the columns",
    ),
}


@pytest.mark.parametrize(("define", "why"), WRONG.values(), ids=WRONG)
def test_a_wrong_definition_is_refused_and_leaves_nothing(define, why):
    program, _, samples = basics()
    program.fold(samples, folds.mean(), "local")
    program.declare(Counter(), "n")
    program.declare(BoundedLWWSet(bound=3), "shared")
    program.declare(Product(Counter()), "flat")
    window(program)
    before = (dict(program.events), dict(program.variables), set(program.local_folds))
    with pytest.raises(ValueError, match=why):
        define(program)
    after = (dict(program.events), dict(program.variables), set(program.local_folds))
    assert after == before
    assert program.validate().dynamic_folds == {}


def counted():
    return Counter().increment(Replica(1, 1, "pi-1"))


def test_a_fold_whose_columns_clash_leaves_no_target():
    class Least(Mean2):
        name, columns = "least", (Column("count", Op.MIN), Column("total_q", Op.SUM))

    program, temperature, samples = basics()
    program.window("a", source=temperature, fold=folds.count(), size_s=60)
    with pytest.raises(ValueError, match="rename a part"):
        program.fold(samples, Least(), "least")
    assert "least" not in program.variables


def test_a_program_needs_a_name_and_an_event():
    for name in ("", None, "a\tb", "x" * 65):
        with pytest.raises(ValueError, match="a printable name"):
            Program(name)
    with pytest.raises(ValueError, match="declares no event"):
        Program("p").validate()


def test_declaring_again_is_declaring_once():
    program, _, samples = basics()
    assert program.declare_dynamic(BoundedLWWSet(bound=100), "samples") is samples
    shape = Pair(Counter(), GCounter())
    assert program.declare(shape, "pair") is program.declare(shape, "pair")


def test_a_program_does_not_change_with_the_bottom_it_was_given():
    program, _, _ = basics()
    given = Counter()
    declared = program.declare(given, "n")
    given |= counted()
    assert declared.bottom == Counter()


def test_declared_targets_may_be_nested():
    program, _, samples = basics()
    shape = Product(Pair(Counter(), GCounter()), Counter())
    fold = folds.struct(mean=folds.mean(), n=folds.count())
    target = program.declare(shape, "both")
    assert program.fold(samples, fold, target) is target


def test_only_folds_that_a_dynamic_fold_reads_are_published():
    program, _, samples = basics()
    program.fold(samples, folds.sum(), "private")
    program.fold_dynamic(program.fold(samples, folds.mean(), "public"), "global")
    assert set(program.published_folds) == {"public"}
    assert set(program.local_folds) == {"private", "public"}


# Keys, and collecting without a handler


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

    changes = program.run_handlers(event(room="attic"))
    assert changes == [Change("samples", "add", (2150, 40_000_000), "attic")]
    assert program.run_handlers(event(room=""))[0].key == ""
    for wrong, error in (({}, KeyError), ({"room": "a\nb"}, ValueError)):
        with pytest.raises(error):
            program.run_handlers(event(**wrong))


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
def test_a_key_that_is_none_is_refused_and_says_whose_it_is(given, reason):
    with pytest.raises(ValueError, match=f"the key of variable 'samples' must .*{reason}"):
        key_of(lambda _: given, event(), "variable 'samples'")
    assert key_of(lambda _: "ü" * 127 + "x", event(), "x") == "ü" * 127 + "x"
    assert key_of(None, event(), "x") == ""


def test_a_variable_without_keys_says_the_empty_one():
    program, *_ = basics()
    assert [change.key for change in program.run_handlers(event())] == [""]


def test_a_change_of_a_variable_with_keys_needs_an_event():
    program, samples = by_room()
    with pytest.raises(ValueError, match="'samples' has keys, and there is no event"):
        Update(program)(samples, "add", 1, 1)


def test_keys_and_their_version_are_part_of_the_streams():
    streams = set()
    for changed in ({}, {"version": 2}, {"key": None}, {"key": None, "version": 2}):
        program, samples = by_room(**changed)
        program.fold_dynamic(program.fold(samples, folds.mean(), "here"), "everywhere")
        streams |= {program.local_folds["here"].stream, program.dynamic_folds["everywhere"].stream}
        assert program.dynamic_folds["everywhere"].keyed == ("key" not in changed)
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
    with pytest.raises(ValueError, match=r"declare 'n': key= is for a BoundedLWWSet, not"):
        program.declare_dynamic(Counter(), "n", key=lambda event: "")
    assert program.variables == {}


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
    assert program.collections("temperature") == ()
    assert program.collect(temperature, into=samples) is samples
    program.collect("temperature", into=other)
    program.collect(temperature, into=samples)
    assert program.collections("temperature") == (samples, other)
    assert program.collections("humidity") == ()
    assert program.validate() is program


def test_collecting_says_which_resolution_a_variable_has():
    program = Program("p")
    program.event("temperature", resolution="0.01")
    humidity = program.event("humidity", resolution="0.5")
    samples = program.declare_dynamic(BoundedLWWSet(bound=3), "samples")
    with pytest.raises(ValueError, match="which event does it measure"):
        program.validate()
    program.collect(humidity, into=samples)
    assert program.validate().resolution_of(samples) == Resolution("0.5")
    program.collect("temperature", into=samples)
    with pytest.raises(ValueError, match="which event does it measure"):
        program.validate()


def test_what_cannot_collect_is_refused():
    program, temperature, samples = basics()
    program.event("humidity", resolution="0.5")
    average = program.fold(samples, folds.mean(), "average")
    shared = program.declare(BoundedLWWSet(bound=3), "shared")
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
    assert program.collections("temperature") == program.collections("humidity") == ()


def test_a_handler_may_say_another_resolution_than_what_is_collected():
    program = Program("p")
    temperature = program.event("temperature", resolution="0.01")
    humidity = program.event("humidity", resolution="0.5")
    samples = program.declare_dynamic(BoundedLWWSet(bound=3), "samples", measures=temperature)
    program.collect(temperature, into=samples)

    @program.on_event(humidity)
    def damp(event, update):
        update(samples, BoundedLWWSet.add, event.value, event.time_us)

    assert program.validate().resolution_of(samples) == Resolution("0.01")


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
