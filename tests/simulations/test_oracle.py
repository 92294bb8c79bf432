"""The oracle gives what its definitions say."""

import hashlib
import random
from decimal import Decimal
from fractions import Fraction

import pytest

from crdts import BoundedLWWSet, Counter, Version
from lasp_edge import Program, folds
from lasp_edge.folds.numbers import Resolution
from simulations.oracle import (
    PublishedPartial,
    Reading,
    WindowTruth,
    accepted,
    combined,
    dynamic_partials,
    folded,
    inputs,
    left_out,
    local_partials,
    quantised,
    windows,
)
from tests.simulations.support_oracle import SUMMARY, declared, temperatures


def reading(value, time_s, device="pi-1", **others):
    return Reading(device, "temperature", value, round(time_s * 1_000_000), **others)


def test_a_reading_is_in_every_window_that_spans_its_time():
    truth = windows(temperatures(), "uneven", [reading(1, 40)])
    assert [start_us for _, start_us in truth] == [0, 20_000_000, 40_000_000]
    assert set(truth.values()) == {WindowTruth((1, 100, 100, 100), 1)}


def test_a_window_holds_its_start_and_not_its_end():
    truth = windows(temperatures(), "minute", [reading(1, 60)])
    assert min(truth) == ("", 10_000_000)
    assert max(truth) == ("", 60_000_000)


def test_equal_readings_of_two_topics_are_two_and_of_one_are_one():
    read = [reading(1, 40, place=topic) for topic in ("sensors/a", "sensors/b", "sensors/a")]
    truth = windows(temperatures(), "uneven", read)
    assert set(truth.values()) == {WindowTruth((2, 200, 100, 100), 1)}


def test_times_before_the_epoch_have_windows_too():
    truth = windows(temperatures(), "minute", [reading(1, -0.000001)])
    assert [start_us // 10_000_000 for _, start_us in truth] == [-6, -5, -4, -3, -2, -1]


def test_readings_are_grouped_by_key():
    program = declared()
    program.window(
        "by_room",
        source="temperature",
        fold=folds.mean(),
        size_s=60,
        key=lambda event: event.tags["room"],
    )
    rooms = [("attic", 21), ("cellar", 11), ("attic", 23)]
    seen = [reading(value, 1, tags={"room": room}) for room, value in rooms]
    assert windows(program.plan(), "by_room", seen) == {
        ("attic", 0): WindowTruth((2, 4400), 1),
        ("cellar", 0): WindowTruth((1, 1100), 1),
    }


def test_equal_readings_count_once_and_different_ones_each():
    seen = [
        reading(21.5, 1),
        reading(21.5, 1),
        reading(21.500000001, 1),  # equal once it is quantised
        reading(21.5, 1, device="pi-2"),
        reading(21.5, 1, tags={"room": "attic"}),
        reading(21.6, 1),
        reading(21.5, 2),
    ]
    (truth,) = {windows(temperatures(), "minute", order)["", 0] for order in (seen, seen[::-1])}
    assert truth == WindowTruth((5, 10_760, 2150, 2160), 2)


def test_readings_stamped_on_acceptance_are_never_repeats():
    seen = [reading(21.5, 1, stamped=True)] * 2 + [reading(21.5, 1)]
    assert windows(temperatures(), "minute", seen)["", 0].partial == (3, 6450, 2150, 2150)


def test_tags_are_compared_without_their_order():
    one, other = {"room": "attic", "floor": "2"}, {"floor": "2", "room": "attic"}
    assert len(accepted(temperatures(), [reading(1, 1, tags=one), reading(1, 1, tags=other)])) == 1


def test_what_cannot_be_accepted_is_left_out():
    refused = [None, True, "1", float("nan"), float("inf"), 1e300, -(2.0**31) / 100]
    seen = [reading(value, 1) for value in refused] + [Reading("pi-1", "humidity", 1, 1)]
    assert accepted(temperatures(), seen) == []
    assert windows(temperatures(), "minute", seen) == {}


@pytest.mark.parametrize(
    ("value", "resolution", "steps"),
    [
        (0.125, "0.01", 12),
        (0.135, "0.01", 14),
        (-2.5, "1", -2),
        (7, "5", 1),
        (Fraction(1, 3), "0.3", 1),
        (Decimal("0.45"), "0.3", 2),
        (2**31 - 1, "1", 2**31 - 1),
        (2**31, "1", None),
        (Decimal("sNaN"), "1", None),
    ],
)
def test_quantising_is_by_definition(value, resolution, steps):
    assert quantised(value, Resolution(resolution)) == steps


def test_only_the_last_values_that_handlers_added_are_folded():
    seen = [reading(value, value) for value in (5, 6, 1, 2)]
    assert local_partials(temperatures(bound=2), "last", seen)[""] == (2, 300, 100, 200)
    assert local_partials(temperatures(bound=2), "last", seen[:3])[""] == (2, 700, 100, 600)
    assert local_partials(temperatures(bound=2), "last", [])[""] == (0, 0, None, None)


def test_last_is_by_acceptance_and_a_repeat_adds_nothing():
    seen = [reading(5, 9), reading(6, 1), reading(7, 5), reading(5, 9)]
    assert local_partials(temperatures(bound=2), "last", seen)[""] == (2, 1300, 600, 700)


def test_handlers_are_run_as_they_are_written():
    program = Program("p")
    program.event("temperature", resolution="0.01")
    program.event("humidity", resolution="0.5")
    warm = program.declare_dynamic(BoundedLWWSet(bound=9), "warm", measures="temperature")
    other = program.declare_dynamic(BoundedLWWSet(bound=9), "other", measures="humidity")
    count = program.declare(Counter(), "count")

    @program.on_event("temperature")
    def sampled(event, update):
        update(count, "increment")
        if event.value > 20:
            update(warm, ("add", event.value * 1.8 + 32, event.time_us))
        update(other, "add", event.value, event.time_us)

    program.fold(warm, folds.struct(**SUMMARY), "fahrenheit")
    program.fold(other, folds.sum(), "halves")
    seen = [reading(value, value) for value in (19, 21, 25.3)]
    assert local_partials(program.plan(), "fahrenheit", seen)[""] == (2, 6980 + 7754, 6980, 7754)
    assert local_partials(program.plan(), "halves", seen)[""] == (38 + 42 + 51,)


def test_a_dynamic_fold_combines_what_each_device_holds():
    one = [reading(value, value, "pi-1") for value in (1, 2, 3)]
    other = [reading(value, value, "pi-2") for value in (9,)]
    program = temperatures(bound=2)
    fleet = {"pi-2": other, "pi-1": one, "pi-3": []}
    assert dynamic_partials(program, "fleet", fleet)[""] == (3, 1400, 200, 900)


def test_a_set_bounded_by_age_holds_what_was_accepted_lately_and_must_know_when():
    program = Program("p")
    program.event("temperature")
    recent = program.declare_dynamic(BoundedLWWSet(bound=9, max_age_s=60), "recent")
    program.fold(recent, folds.sum(), "sum")
    program.collect("temperature", into=recent)
    seen = [reading(n, 5, accepted_us=n * 1_000_000, stamped=True) for n in range(1, 100)]
    assert local_partials(program.plan(), "sum", seen, 99_000_000)[""] == (sum(range(91, 100)),)
    assert local_partials(program.plan(), "sum", seen, 155_000_000)[""] == (sum(range(95, 100)),)
    assert local_partials(program.plan(), "sum", seen, 200_000_000)[""] == (0,)
    for readings, now_us in ((seen, None), ([reading(1, 1)], 5)):
        with pytest.raises(ValueError, match="'recent' is bounded by age: now_us="):
            local_partials(program.plan(), "sum", readings, now_us)[""]


def test_a_name_that_the_program_lacks_is_a_key_error():
    for wrong in (
        lambda: windows(temperatures(), "hour", []),
        lambda: local_partials(temperatures(), "hour", [])[""],
        lambda: dynamic_partials(temperatures(), "last", {})[""],
    ):
        with pytest.raises(KeyError):
            wrong()


def by_room(fold=None, **limits):
    """Return a program that collects into a set a room, and adds warm readings a second time."""
    program = Program("rooms")
    temperature = program.event("temperature", resolution="0.01")
    samples = program.declare_dynamic(
        BoundedLWWSet(**limits), "samples", key=lambda event: event.tags["room"]
    )
    program.collect(temperature, into=samples)

    @program.on_event(temperature)
    def warm(event, update):
        if event.value > 20:
            update(samples, BoundedLWWSet.add, event.value, event.time_us)

    program.fold_dynamic(program.fold(samples, fold or folds.mean(), "here"), "everywhere")
    return program.plan()


def in_room(room, value, time_s, device="pi-1", **others):
    return reading(value, time_s, device, tags={"room": room}, **others)


def test_each_key_has_its_own_last_values_collected_before_handlers():
    program = by_room(bound=3)
    seen = [in_room("a", 1, 1), in_room("b", 2, 2), in_room("a", 21, 3), in_room("a", 5, 4)]
    assert local_partials(program, "here", seen) == {"a": (3, 4700), "b": (1, 200)}
    assert local_partials(program, "here", [in_room("a", 1, 1), in_room("a", 1, 1)]) == {
        "a": (1, 100)
    }
    assert local_partials(program, "here", []) == {}


def test_a_key_without_young_samples_is_none():
    program = by_room(max_age_s=10)
    seen = [in_room("a", 1, 1, accepted_us=1), in_room("b", 1, 1, accepted_us=5_000_000)]
    for now_us, keys in ((10_000_001, {"a", "b"}), (10_000_002, {"b"}), (16_000_000, set())):
        assert set(local_partials(program, "here", seen, now_us)) == keys


def test_retired_devices_do_not_count():
    program = by_room(bound=3)
    fleet = {
        "pi-1": [in_room("a", 1, 1)],
        "pi-2": [in_room("a", 2, 1, "pi-2"), in_room("b", 3, 2, "pi-2")],
    }
    assert dynamic_partials(program, "everywhere", fleet) == {"a": (2, 300), "b": (1, 300)}
    assert dynamic_partials(program, "everywhere", fleet, ["pi-2"]) == {"a": (1, 100)}
    plain = {"pi-1": [reading(1, 1)], "pi-2": [reading(2, 1, "pi-2")]}
    assert dynamic_partials(temperatures(), "fleet", plain, {"pi-1"})[""] == (1, 200, 200, 200)
    assert dynamic_partials(temperatures(), "fleet", plain, plain)[""] == (0, 0, None, None)


def test_devices_that_are_silent_for_longer_than_a_fold_allows_do_not_count():
    program = Program("silent")
    heat = program.event("heat", resolution="0.01")
    samples = program.declare_dynamic(BoundedLWWSet(bound=3), "samples")
    program.collect(heat, into=samples)
    here = program.fold(samples, folds.mean(), "here")
    program.fold_dynamic(here, "heard", stale_after_s=90)
    program.fold_dynamic(here, "ever")
    plan, silent = program.plan(), {"pi-1": 90_000_000, "pi-2": 90_000_001}
    fleet = {
        name: [Reading(name, "heat", at, at)] for at, name in enumerate(("pi-0", "pi-1", "pi-2"))
    }
    assert dynamic_partials(plan, "heard", fleet, silent_us=silent)[""] == (2, 100)
    assert dynamic_partials(plan, "heard", fleet)[""] == (3, 300)
    assert dynamic_partials(plan, "ever", fleet, silent_us=silent)[""] == (3, 300)
    said = {
        ("", name): PublishedPartial(Version(1, 7, at), (1, at * 100))
        for at, name in enumerate(fleet)
    }
    without = {at: one for at, one in said.items() if at[1] != "pi-2"}
    gone = left_out(plan, "heard", silent)
    assert inputs(plan, "heard", said, {}, left_out=gone) == inputs(plan, "heard", without, {})


@pytest.mark.parametrize(
    "fold",
    [
        folds.top(3),
        folds.quantile(0.5),
        folds.distinct(),
        folds.first(),
        folds.last(),
        folds.variance(),
        folds.histogram([0, 5, 10]),
        folds.struct(low=folds.min(), last=folds.last(), best=folds.top(2)),
    ],
    ids=repr,
)
def test_columns_combine_as_the_fold_combines_them(fold):
    chance, bound = random.Random(7), fold.at(Resolution("0.01"))
    for _ in range(30):
        samples = [(chance.randint(-900, 900), chance.randint(0, 9)) for _ in range(20)]
        cut = chance.randint(0, 20)
        whole = bound.lift_column(*map(list, zip(*samples, strict=True)))
        assert folded(bound, samples) == whole
        assert (
            combined(bound, [folded(bound, samples[:cut]), folded(bound, samples[cut:])]) == whole
        )
    assert combined(bound, []) == folded(bound, []) == bound.zero


def test_inputs_are_a_sum_of_hashes_written_out():
    program = by_room(bound=3)
    words = {
        ("a", "pi-1"): PublishedPartial(Version(1, 7, 3), (2, 4400)),
        ("a", "pi-2"): PublishedPartial(Version(1, 8, 1), (1, None)),
        ("b", "pi-1"): PublishedPartial(Version(1, 7, 2), (1, b"\x0a\xff")),
    }
    retired = {"pi-2": Version(1, 8, 60)}
    stream = program.dynamic_folds["everywhere"].stream

    def expected(*texts):
        digests = [hashlib.sha256(text.encode()).digest()[:8] for text in (*texts, str(stream))]
        return (sum(int.from_bytes(d, "big") for d in digests) % 2**64).to_bytes(8, "big").hex()

    first, second = "a\x1fpi-1\x1f1\x1f7\x1f3\x1f2\x1f4400", "a\x1fpi-2\x1f1\x1f8\x1f1\x1f1\x1f"
    third = "b\x1fpi-1\x1f1\x1f7\x1f2\x1f1\x1f0aff"
    assert inputs(program, "everywhere", words, {}) == expected("", first, second, third)
    assert inputs(program, "everywhere", words, {}, "a") == expected("", first, second)
    gone = "pi-2=1.8.60"
    assert inputs(program, "everywhere", words, retired) == expected(gone, first, third)
    both = retired | {"pi-1": Version(2, 0, 0)}
    assert inputs(program, "everywhere", words, both) == expected("pi-1=2.0.0\x1fpi-2=1.8.60")
