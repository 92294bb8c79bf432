"""What a type checker has to refuse, and what it has to take: lines of programs."""

PRELUDE = """
from typing import assert_type

from crdts import BoundedLWWSet, Counter, DerivedSet, GSet, LWWRegister, ORSet
from lasp_edge import Column, Event, FoldValue, Op, Parameter, Partial, Program, Resolution
from lasp_edge import StreamRow, Update, Variable, folds, scans


class Spent(folds.Fields):
    name, parts, columns = "spent", ("spent",), (Column("spent_q", Op.SUM),)

    def lift_fields(self, price: int, amount: int) -> Partial:
        return (price * amount,)

    def lower(self, partial: Partial, resolution: Resolution) -> dict[str, float | int | None]:
        return {"spent": partial[0]}


program = Program("house")
warmth = program.event("warmth", resolution="0.1")
door = program.event("door", resolution="1")
who = program.event("who", text=True)
gain = program.parameter("gain", "1", resolution="0.1")
mode = program.parameter("mode", "day", choices=("day", "night"))
samples = program.declare_dynamic(BoundedLWWSet(bound=10), "samples")
opened = program.declare(GSet(), "opened")
noted = program.declare(ORSet(), "noted")
count = program.declare(Counter(), "count")
last = program.declare(LWWRegister(), "last")
here = program.fold(samples, folds.mean(), "here")
everywhere = program.fold_dynamic(here, "everywhere")
used = program.scan("used", source=door, scan=scans.differences(), per_device=True)
joined = scans.as_of(warmth, door)
pairs = program.scan("pairs", source=[warmth, door], scan=joined, per_device=True)
both = program.union(opened, noted, "both")


@program.on_event(warmth)
def measured(event: Event, update: Update) -> None:
    assert_type(event.value, float)
    assert_type(update.value(everywhere), FoldValue | None)
    update(samples, BoundedLWWSet.add, event.value, event.time_us)
    update(opened, GSet.add, event.tags["room"])
    update(noted, ORSet.remove, event.tags["room"])
    update(count, Counter.increment)
    update(count, Counter.increment, by=2)
    update(count, "increment", 2)
    update(last, LWWRegister.write, "on", event.time_us)


@program.on_event(who)
def named(event: Event[str], update: Update) -> None:
    update(noted, ORSet.add, event.value.lower())


@program.on_value(everywhere, above=gain)
def risen(value: FoldValue, update: Update) -> None:
    assert_type(value.number, float | int | None)


@program.on_result(program.result(used))
def gone(row: StreamRow, update: Update) -> None:
    update(noted, ORSet.add, row.key)


assert_type(opened, Variable[GSet])
assert_type(everywhere, Variable[FoldValue])
assert_type(both, Variable[DerivedSet])
assert_type(mode, Parameter[str])
program.window("a", source=warmth, fold=folds.mean, size_s=60, where=lambda event: event.value > 1)
program.window(
    "b",
    source=warmth,
    fold=lambda at: folds.quantile(0.5, relative_error=at[gain]),
    size_s=gain,
    key=lambda event: (event.tags["room"], round(event.value)),
    value=lambda event, at: event.value * at[gain],
    where=lambda event, at: at[mode] == "day",
    uses=(gain, mode),
)
program.window("c", source=used, fold=folds.sum(), size_s=60, key=lambda event: event.key)
program.window("d", source=[warmth, door], fold=folds.sum, size_s=60, key=lambda event: event.name)
program.window("e", source="warmth", fold=folds.sum(), size_s=60, key=lambda event: event.tags["a"])
program.window("f", source=who, fold=folds.sum(), size_s=60, value=lambda event: len(event.value))
program.map(pairs, lambda event: event.value[0] - event.value[1], "apart", resolution="0.1")
program.map(both, lambda room: room[0], "floors")
program.filter(who, lambda event: event.value.startswith("a"), "some")


def wrong(event: Event, update: Update, value: FoldValue, row: StreamRow) -> None:
"""
"""A program that both checkers take; the wrong lines stand in its last function."""

ATTRIBUTE = ("attr-defined", "reportAttributeAccessIssue")
"""Under which both refuse an attribute that is not there."""
ARGUMENT = ("arg-type", "reportArgumentType")
"""The same for an argument of another type; `CHANGE` of a function of several signatures."""
CHANGE = ("call-overload", "reportArgumentType")
UNSEEN = (None, "reportAttributeAccessIssue")
"""mypy does not look into a function that may take one or two arguments, which editors do."""

WRONG = {
    # A change that the variable's type has not, or with other arguments.
    "update(opened, Counter.increment, 1)": CHANGE,
    "update(opened, ORSet.add, 'attic')": CHANGE,
    "update(count, Counter.increment, 'x')": CHANGE,
    "update(count, Counter.increment, 1, 2)": ("call-overload", "reportCallIssue"),
    "update(count, Counter.increment, to=2)": ("call-overload", "reportCallIssue"),
    "update(samples, BoundedLWWSet.add, event.value)": ("call-overload", "reportCallIssue"),
    "update(last, LWWRegister.set, 'on')": ATTRIBUTE,
    "update(count, Counter)": CHANGE,
    "update(here, BoundedLWWSet.add, 1, 2)": CHANGE,
    "update(program, GSet.add, 'x')": CHANGE,
    # What handlers are given has no such attribute.
    "print(event.valeu)": ATTRIBUTE,
    "print(event.value.lower())": ATTRIBUTE,
    "print(value.nubmer)": ATTRIBUTE,
    "print(row.devices)": ATTRIBUTE,
    "print(value.number + 1)": ("operator", "reportOptionalOperand"),
    "print(update.value(opened))": ARGUMENT,
    # Into lambdas, both checkers look.
    "program.map(warmth, lambda event: event.valeu, 'x')": ATTRIBUTE,
    "program.filter(warmth, lambda event: event.valeu > 1, 'x')": ATTRIBUTE,
    "program.flat_map(warmth, lambda event: [event.valeu], 'x')": ATTRIBUTE,
    "program.scan('x', source=door, scan=scans.running(lambda n, event: event.valeu))": ATTRIBUTE,
    "program.scan('x', source=door, scan=scans.last(2), key=lambda e: e.tag['a'])": ATTRIBUTE,
    "folds.weighted_mean(lambda event: event.valeu, lambda event: 1, steps=('1', '1'))": ATTRIBUTE,
    "program.declare_dynamic(BoundedLWWSet(bound=5), 'x', key=lambda e: e.tag['a'])": ATTRIBUTE,
    "program.on_event(warmth)(lambda event, update: update(opened, Counter.increment, 1))": CHANGE,
    # Handlers that take something else.
    "program.on_event(warmth)(lambda event: None)": ARGUMENT,
    "program.on_event(who)(measured)": ARGUMENT,
    "program.on_event(opened)": ARGUMENT,
    "program.on_value(everywhere)(measured)": ARGUMENT,
    "program.on_value(opened)": ARGUMENT,
    "program.on_result(used)(measured)": ARGUMENT,
    # Folds and scans in each other's place, and over what they cannot read.
    "program.fold(samples, scans.last(2), 'x')": ARGUMENT,
    "program.fold(warmth, folds.mean(), 'x')": ARGUMENT,
    "program.fold(opened, folds.mean(), 'x')": ARGUMENT,
    "program.fold_dynamic(samples, 'x')": ARGUMENT,
    "program.collect(who, into=samples)": ARGUMENT,
    "program.collect(warmth, into=opened)": ARGUMENT,
    "program.declare(folds.mean(), 'x')": ("type-var", "reportArgumentType"),
    "program.scan('x', source=door, scan=folds.mean())": ARGUMENT,
    "program.intersection(opened, count, 'x')": ARGUMENT,
    "program.alert('x', opened, above=1)": ARGUMENT,
    "program.alert('x', everywhere, above=mode)": ARGUMENT,
    "program.combine('x', lambda a, b: a - b, here, opened, resolution='1')": ARGUMENT,
    # Events and parameters that are not what they have to be.
    "program.event('x', resolution=0.1)": CHANGE,
    "program.event('x', text=True, resolution='1')": CHANGE,
    "program.parameter('x', 1)": CHANGE,
}
"""A wrong line -> the code under which mypy refuses it, and pyright's rule."""

WRONG_WINDOWS = {
    "source=opened, fold=folds.mean(), size_s=60": ARGUMENT,
    "source=warmth, fold=scans.last(2), size_s=60": ARGUMENT,
    "source=warmth, fold=folds.mean(), size_s='60'": ARGUMENT,
    "source=warmth, fold=folds.mean(), size_s=mode": ARGUMENT,
    "source=warmth, fold=folds.mean()": ("call-arg", "reportCallIssue"),
    "source=warmth, fold=folds.mean(), size_s=60, key=lambda event: 3": ARGUMENT,
    "source=warmth, fold=folds.mean(), size_s=60, key=lambda event: event.tag['room']": ATTRIBUTE,
    "source=warmth, fold=folds.mean(), size_s=60, value=lambda event: event.device": (
        None,
        "reportArgumentType",
    ),
    "source=warmth, fold=folds.mean(), size_s=60, where=lambda event: event.valeu > 1": UNSEEN,
    "source=warmth, fold=folds.mean(), size_s=60, where=lambda event, at: event.valeu > 1": UNSEEN,
    "source=warmth, fold=folds.mean(), size_s=60, value=lambda event: event.valu": UNSEEN,
    "source=warmth, fold=folds.mean(), size_s=60, uses=gain": ARGUMENT,
    "source=warmth, fold=folds.mean(), size_s=60, value=lambda event: 'x'": ARGUMENT,
    "source=warmth, fold=folds.mean(), size_s=60, where=lambda event: 'x'": ARGUMENT,
    "source=warmth, fold=lambda at: 3, size_s=60": ARGUMENT,
}
"""Arguments of a wrong window."""

LINES = {
    **WRONG,
    **{f"program.window('x', {given})": codes for given, codes in WRONG_WINDOWS.items()},
}
