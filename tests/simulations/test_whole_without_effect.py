"""What a whole program never does on any made-up reading: a handler's update, a part of a row."""

import contextlib

import pytest

from crdts import BoundedLWWSet, Counter, GSet, LWWRegister
from lasp_edge import Program, folds, scans
from simulations.whole import RARE, whole


def lamps():
    """Return a program of two handlers that never update anything, and one that seldom does."""
    program = Program("lamps")
    lamp = program.event("lamp", resolution="1", least=0, most=1)
    ons = program.declare(Counter(), "ons")
    seen, high = program.declare(GSet(), "seen"), program.declare(GSet(), "high")

    @program.on_event(lamp)
    def never(event, update):
        if event.value == "on":
            update(ons, Counter.increment, 1)

    @program.on_event(lamp)
    def hidden(event, update):
        with contextlib.suppress(Exception):
            update(high, GSet.ad, event.device)

    @program.on_event(lamp)
    def seldom(event, update):
        if event.tags.get("room") == "attic" and event.value == 1:
            update(seen, GSet.add, event.device)

    return program


def test_a_handler_that_updates_nothing_is_named():
    doubts = whole(lamps().plan(), {}).doubts
    assert [line.partition(";")[0] for line in doubts] == [
        "handler never of event lamp: no made-up reading makes it update ons",
        "handler hidden of event lamp: no made-up reading makes it update high",
    ]


@pytest.mark.parametrize(("step", "found"), [("1", 1), ("0.001", 0)])
def test_steps_that_round_a_field_to_one_value_are_named(step, found):
    program = Program("melt")
    heat = program.event("heat", resolution="0.1", least=0, most=60)
    fold = folds.regression(lambda e: e.value / 1_000, lambda e: e.value, steps=(step, "0.1"))
    program.window("melt", source=heat, fold=fold, size_s=60)
    doubts = whole(program.plan(), {}).doubts
    assert [line.partition(";")[0] for line in doubts] == [
        "window melt: no made-up reading gives it a slope or intercept"
    ] * found


def test_a_tag_that_is_asked_for_under_another_value_of_a_parameter_is_given():
    program = Program("lamps")
    lamp = program.event("lamp", resolution="1", least=0, most=1)
    mode = program.parameter("mode", "all", choices=("all", "odd"))
    program.window(
        "odd ones",
        source=lamp,
        fold=folds.count(),
        size_s=60,
        where=lambda event, at: at[mode] == "all" or event.tags["side"] != "left",
        uses=(mode,),
    )
    found = whole(program.plan(), {})
    assert (found.wrong, found.doubts) == ([], [])
    assert found.tags == {"lamp": {"side": [RARE]}}


def test_a_tag_of_numbers_has_no_text_that_another_tag_is_compared_with():
    program = Program("lamps")
    lamp = program.event("lamp", resolution="1", least=0, most=1)
    program.window(
        "a",
        source=lamp,
        fold=folds.count(),
        size_s=60,
        where=lambda e: int(e.tags["no"]) % 2 == 1 or e.tags["kind"] == "led",
    )
    found = whole(program.plan(), {"lamp": {"no"}})
    assert (found.wrong, found.doubts) == ([], [])


def test_sets_that_can_have_no_element_are_named():
    program = Program("hut")
    bed = program.event("bed", resolution="1", least=0, most=40)
    used, clean = program.declare(GSet(), "used"), program.declare(GSet(), "clean")

    @program.on_event(bed)
    def slept(event, update):
        update(used, GSet.add, round(event.value))
        update(clean, GSet.add, f"{event.value:.0f}")

    program.intersection(used, clean, "both")
    program.union(used, clean, "any")
    program.filter(used, lambda n: n == "2", "upper")
    program.filter(used, lambda n: n == 2, "lower")
    doubts = whole(program.plan(), {}).doubts
    assert [line.partition(",")[0] for line in doubts] == [
        "intersection both: no made-up element is in it",
        "filter upper: no made-up element is in it",
    ]


@pytest.mark.parametrize("is_swapped", [True, False])
def test_a_value_and_a_time_that_change_places_are_named(is_swapped):
    program = Program("kiln")
    heat = program.event("heat", resolution="1", least=0, most=1400)
    last = program.declare_dynamic(BoundedLWWSet(bound=10), "last", measures=heat)
    newest = program.declare(LWWRegister(), "newest")

    @program.on_event(heat)
    def read(event, update):
        value, time = round(event.value), event.time_us
        first, second = (time // 1_000_000, value) if is_swapped else (value, time)
        update(last, BoundedLWWSet.add, first, second)
        update(newest, LWWRegister.write, *((time, value) if is_swapped else (value, time)))

    program.fold(last, folds.mean(), "here")
    doubts = whole(program.plan(), {}).doubts
    assert [line.partition(" at")[0] for line in doubts] == [
        "handlers write last",
        "handlers write newest",
    ] * is_swapped


def test_what_is_never_a_plausible_value_of_what_a_set_measures_is_named():
    program = Program("kiln")
    heat = program.event("heat", resolution="0.1", least=-10, most=1400)
    last = program.declare_dynamic(BoundedLWWSet(bound=10), "last", measures=heat)

    @program.on_event(heat)
    def read(event, update):
        update(last, BoundedLWWSet.add, event.value + 5_000, event.time_us)

    program.fold(last, folds.mean(), "here")
    (line,) = whole(program.plan(), {}).doubts
    assert line.startswith("handlers add to last, which measures heat, nothing that is -10 to 1400")


def test_a_rate_that_only_made_up_readings_are_too_steep_for_is_a_doubt():
    program = Program("gas")
    meter = program.event("meter", resolution="0.0001", least=0, most=1_000)
    rate = scans.rate(per_s=3_600, resolution="0.001")
    program.result(program.scan("flow", source=meter, scan=rate, per_device=True))
    found = whole(program.plan(), {})
    assert found.wrong == []
    (line,) = found.doubts
    assert line.startswith("scan flow: a reading that is far from the one a second before")


def means_of_heat():
    """Return a program, and two values of it: of heat, and of a goal that is never reached."""
    program = Program("bakery")
    values = []
    for name, least, most in (("heat", 0, 350), ("goal", 351, 400)):
        made = program.event(name, resolution="1", unit="°C", least=least, most=most)
        samples = program.declare_dynamic(BoundedLWWSet(bound=5), f"{name}s", measures=made)
        program.collect(made, into=samples)
        here = program.fold(samples, folds.mean(), f"{name}_here")
        values.append(program.fold_dynamic(here, f"{name}_all"))
    return program, values


@pytest.mark.parametrize(
    ("function", "found"),
    [
        (lambda heat, goal: heat // goal, ["alert ready never goes on: it waits for share of"]),
        (lambda heat, goal: heat / goal, []),
        (
            lambda heat, goal: heat / goal / 1_000,
            ["combine share: each of its numbers is rounded", "alert ready never goes on"],
        ),
        (lambda heat, goal: heat / (goal - goal), ["value share: no made-up reading gives it one"]),
    ],
)
def test_a_value_that_is_always_the_same_or_never_there_is_named(function, found):
    program, values = means_of_heat()
    share = program.combine("share", function, *values, resolution="0.01")
    program.alert("ready", share, above="0.5")
    doubts = whole(program.plan(), {}).doubts
    assert [line[: len(text)] for line, text in zip(doubts, found, strict=True)] == found


@pytest.mark.parametrize(("bound", "found"), [(1, 1), (2, 0)])
def test_a_deviation_of_one_sample_is_never_there(bound, found):
    program = Program("heat")
    heat = program.event("heat", resolution="1", least=0, most=350)
    samples = program.declare_dynamic(BoundedLWWSet(bound=bound), "samples", measures=heat)
    program.collect(heat, into=samples)
    program.alert("restless", program.fold(samples, folds.stddev(), "here"), above=50)
    assert [line.partition(":")[0] for line in whole(program.plan(), {}).doubts] == [
        "value here"
    ] * found


@pytest.mark.parametrize(("level", "found"), [("50", 1), ("0.95", 0)])
def test_a_level_in_percent_of_a_share_is_named(level, found):
    program = Program("aquarium")
    ph = program.event("ph", resolution="0.01", least=0, most=14)
    share = program.window(
        "share", source=ph, fold=folds.mean(), size_s=60, value=lambda e: int(e.value > 8)
    )
    program.alert("mostly high", share, above=level)
    program.alert(
        "often", program.window("many", source=ph, fold=folds.count(), size_s=60), above=900
    )
    assert len(whole(program.plan(), {}).doubts) == found


@pytest.mark.parametrize(("status", "found"), [("done", 1), ("final", 0)])
def test_a_handler_of_rows_that_updates_nothing_is_named(status, found):
    program = Program("doors")
    door = program.event("door", resolution="1", least=0, most=1)
    changes = program.scan("changes", source=door, scan=scans.changes(), per_device=True)
    notes = program.declare(GSet(), "notes")

    @program.on_result(program.result(changes))
    def noted(row, update):
        if row.status == status:
            update(notes, GSet.add, row.key)

    assert [line.partition(";")[0] for line in whole(program.plan(), {}).doubts] == [
        "handler noted of result changes: no made-up row makes it update notes"
    ] * found


@pytest.mark.parametrize(("divisor", "found"), [(1_000_000, 1), (1_000, 1), (1, 0)])
def test_a_time_of_another_unit_is_named(divisor, found):
    program = Program("doors")
    door = program.event("door", resolution="1", least=0, most=1)
    at = program.map(door, lambda event: (event.time_us // divisor, event.value), "at")
    program.result(at, parts={"opened": "time", "state": "1"})
    doubts = whole(program.plan(), {}).doubts
    assert [line.partition(" is one of")[0][:40] for line in doubts] == [
        "result at: its part opened is a time, an"
    ] * found


def test_a_tag_that_functions_can_do_without_is_named():
    program = Program("house")
    warm = program.event("warm", resolution="0.1")

    def room(event):
        with contextlib.suppress(KeyError):
            return event.tags["rooom"]
        return event.tags.get("floor", "none")

    program.window("w", source=warm, fold=folds.count(), size_s=60, key=room)
    assert whole(program.plan(), {}).spare_tags == {"warm": {"rooom", "floor"}}
