"""A wrong definition is refused at once, says why, and leaves nothing behind."""

import pytest

from crdts import BoundedLWWSet, Counter, GCounter, GSet, ORMap, ORSet, Pair, Product, Replica
from lasp_edge import Program, folds
from lasp_edge.folds.columns import Column, Op
from lasp_edge.protocol.lake_columns import LAKE_COLUMNS
from tests.lasp_edge.support_programs import Mean2, basics


def window(program, **changed):
    whole = {"name": "w", "source": "temperature", "fold": folds.mean(), "size_s": 60} | changed
    return program.window(whole.pop("name"), **whole)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"source": "humidity"}, "declares no event 'humidity'"),
        ({"source": None}, "declares no event None"),
        ({"source": window(basics()[0], name="first")}, "'first' is a window, of whose rows"),
        ({"source": []}, "at least one event or stream is needed"),
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
    before = program.plan().columns
    with pytest.raises(ValueError, match=why):
        window(program, **changed)
    assert set(program.plan().windows) == {"taken"}
    assert program.plan().columns == before


def fold_of(variable, fold, target="x"):
    """Fold a variable of the program, by its name."""
    return lambda p: p.fold(p.plan().variables[variable], fold, target)


def dynamic_of(variable, *target):
    """Combine a variable of the program over the fleet."""
    return lambda p: p.fold_dynamic(p.plan().variables[variable], *target)


NO_SET, TWICE = "a dynamic BoundedLWWSet", "declared twice, differently"
UNFIT = "cannot hold what .* gives; choose another name"

WRONG = {
    "a map of a class": (
        lambda p: ORMap(ORSet),
        r"a map needs a state, such as ORMap\(ORSet\(\)\)",
    ),
    "a bound as text": (lambda p: BoundedLWWSet(bound="5"), "a number, such as bound=5, not '5'"),
    "event twice": (lambda p: p.event("temperature"), "declared twice"),
    "readings that leave before they are there": (
        lambda p: p.event("e", leave_s=0),
        r"event 'e': leave_s must be seconds from 0.1 to 3600, not 0",
    ),
    "readings that leave yesterday": (lambda p: p.event("e", leave_s=-1), "seconds from 0.1"),
    "readings that leave never": (lambda p: p.event("e", leave_s=1e9), "seconds from 0.1"),
    "readings that leave as text": (lambda p: p.event("e", leave_s="10"), "not '10'"),
    "readings that leave if true": (lambda p: p.event("e", leave_s=True), "not True"),
    "readings that leave at no number": (
        lambda p: p.event("e", leave_s=float("nan")),
        "seconds from 0.1",
    ),
    "event without a name": (lambda p: p.event(""), "a printable name"),
    "a float as resolution": (lambda p: p.event("x", resolution=0.01), "decimal text"),
    "a negative resolution": (lambda p: p.event("x", resolution="-1"), "from 1e-30"),
    "declare a number": (lambda p: p.declare(5, "x"), r"such as TwoPSet\(\) or Counter\(\), not 5"),
    "declare a CRDT of one's own": (
        lambda p: p.declare(type("Mine", (GSet,), {})(), "x"),
        "join the types of crdts alone, and Mine is one of your own; declare GSet()",
    ),
    "declare a type": (lambda p: p.declare(Counter, "x"), "a CRDT's bottom value is needed"),
    "declare a value above bottom": (
        lambda p: p.declare(counted(), "x"),
        "a CRDT's bottom value is needed",
    ),
    "variable without a name": (lambda p: p.declare(Counter(), ""), "a printable name"),
    "shared after dynamic of another type": (lambda p: p.declare(Counter(), "samples"), TWICE),
    "shared after dynamic": (lambda p: p.declare(BoundedLWWSet(bound=100), "samples"), TWICE),
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
    "handler of a stream": (
        lambda p: p.on_event(p.map("temperature", abs, "m")),
        "an event is needed, and 'm' is a stream; a window over it folds .*on_result",
    ),
    "collected stream": (
        lambda p: p.collect(p.map("temperature", abs, "m"), into=p.plan().variables["samples"]),
        "an event is needed, and 'm' is a stream; a window over it folds its values",
    ),
    "the fleet's value of a window": (
        lambda p: p.fold_dynamic(p.plan().windows["w"], "x"),
        "a variable is needed, and 'w' is a window, which is over the readings of all devices",
    ),
    "the fleet's value of a stream": (
        lambda p: p.fold_dynamic(p.map("temperature", abs, "m"), "x"),
        "a variable is needed, and 'm' is a stream; a window over it",
    ),
    "handler that is no function": (
        lambda p: p.on_event("temperature")(5),
        "a function .* is needed, not 5",
    ),
    "fold of a name": (lambda p: p.fold("samples", folds.mean(), "x"), "not a variable of program"),
    "fold of a counter": (fold_of("n", folds.mean()), NO_SET),
    "fold of a fold's target": (fold_of("local", folds.mean()), NO_SET),
    "fold of a shared set": (fold_of("shared", folds.mean()), NO_SET),
    "fold with a name as fold": (fold_of("samples", "mean"), "a fold such as"),
    "target without a name": (fold_of("samples", folds.mean(), ""), "a printable name"),
    "target named as a window": (fold_of("samples", folds.mean(), "w"), "taken by a window"),
    "target of another fold": (fold_of("samples", folds.mean(), "local"), "a fold already"),
    "target that is a number": (fold_of("samples", folds.mean(), 5), "not a variable"),
    "mean into one counter": (fold_of("samples", folds.mean(), "n"), UNFIT),
    "fold into its own source": (fold_of("samples", folds.count(), "samples"), UNFIT),
    "min into a counter": (fold_of("samples", folds.min(), "n"), UNFIT),
    "mean into a product of one": (fold_of("samples", folds.mean(), "flat"), UNFIT),
    "fold_dynamic of a set": (dynamic_of("samples", "x"), "must be the target of a fold"),
    "fold_dynamic of a name": (lambda p: p.fold_dynamic("local", "x"), "not a variable of program"),
    "fold_dynamic without a target": (dynamic_of("local"), "write fold_dynamic"),
    "fold_dynamic with a fold as target": (
        dynamic_of("local", folds.mean()),
        "the target is a name or a declared variable, not folds.mean",
    ),
    "fold_dynamic with a number as target": (
        dynamic_of("local", folds.mean(), 5),
        "the target is a name or a declared variable, not 5",
    ),
    "fold_dynamic into its source": (dynamic_of("local", "local"), "a fold already"),
    "fold_dynamic into one counter": (dynamic_of("local", "n"), UNFIT),
}


def declared(program):
    plan = program.plan()
    return dict(plan.events), dict(plan.variables), set(plan.local_folds)


@pytest.mark.parametrize(("define", "why"), WRONG.values(), ids=WRONG)
def test_a_wrong_definition_is_refused_and_leaves_nothing(define, why):
    program, _, samples = basics()
    program.fold(samples, folds.mean(), "local")
    program.declare(Counter(), "n")
    program.declare(BoundedLWWSet(bound=3), "shared")
    program.declare(Product(Counter()), "flat")
    window(program)
    before = declared(program)
    with pytest.raises(ValueError, match=why):
        define(program)
    assert declared(program) == before
    assert program.plan().dynamic_folds == {}


def counted():
    return Counter().increment(Replica(1, 1, "pi-1"))


def test_a_fold_whose_columns_clash_leaves_no_target():
    class Least(Mean2):
        name, columns = "least", (Column("count", Op.MIN), Column("total_q", Op.SUM))

    program, temperature, samples = basics()
    program.window("a", source=temperature, fold=folds.count(), size_s=60)
    with pytest.raises(ValueError, match="rename a part"):
        program.fold(samples, Least(), "least")
    assert "least" not in program.plan().variables


def test_a_program_needs_a_name_and_an_event():
    for name in ("", None, "a\tb", "x" * 65):
        with pytest.raises(ValueError, match="a printable name"):
            Program(name)
    with pytest.raises(ValueError, match="declares no event"):
        Program("p").plan()


def test_declaring_again_is_declaring_once():
    program, temperature, samples = basics()
    again = {"measures": temperature}
    assert program.declare_dynamic(BoundedLWWSet(bound=100), "samples", **again) is samples
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
    assert set(program.plan().published_folds) == {"public"}
    assert set(program.plan().local_folds) == {"private", "public"}


@pytest.mark.parametrize("name", [*sorted(LAKE_COLUMNS), "Key"])
def test_a_fold_has_no_column_or_part_of_the_lakes_own_names(name):
    class OwnColumn(Mean2):
        columns = (Column(name, Op.SUM), Column("total_q", Op.SUM))

    class OwnPart(Mean2):
        parts = (name,)

        def lower(self, partial, resolution):
            return {name: None}

    program, temperature, samples = basics()
    for own in (OwnColumn(), OwnPart()):
        with pytest.raises(ValueError, match=f"the lake has a column '{name}'; rename yours"):
            program.window("w", source=temperature, fold=own, size_s=60)
        with pytest.raises(ValueError, match=f"the lake has a column '{name}'; rename yours"):
            program.fold(samples, own, "own")
    plan = program.plan()
    assert not plan.windows
    assert not plan.local_folds


def combined(program):
    samples = program.declare_dynamic(BoundedLWWSet(bound=5), "last", measures="temperature")
    here = program.fold(samples, folds.mean(), "here")
    program.combine("state", lambda mean: "hot" if mean > 30 else "ok", here, resolution="1")


@pytest.mark.parametrize(
    ("write", "why"),
    [
        (
            lambda p: p.parameter("span", "1") * 60,
            r"parameter 'span' has no value .* by at\[span\]",
        ),
        (lambda p: p.parameter("span", "1") > 3, "parameter 'span' has no value where the program"),
        (lambda p: p.event("a") + p.event("b"), r"events are united by a list: source=\[a, b\]"),
        (combined, "the function of state gives str: not a number"),
    ],
    ids=["a multiple", "a comparison", "a sum of events", "a text"],
)
def test_what_is_no_number_is_not_computed_with(write, why):
    with pytest.raises(ValueError, match=why):
        write(basics()[0])
