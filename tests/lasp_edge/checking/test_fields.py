"""`check` warns of a field of a fold whose step loses what its numbers say."""

from itertools import count

import pytest

from lasp_edge import Program, folds, scans
from lasp_edge.checking.fields import coarse_fields


def hour(event):
    return event.time_us % 3_600_000_000 / 3_600_000_000


def of_hour(event):
    return event.time_us // 3_600_000_000 % 24


def value(event):
    return event.value


def trend(x, y, steps, *, filtered=False, **event):
    program = Program("drift")
    warm = program.event("warm", resolution="0.01", **event)
    source = program.filter(warm, lambda event: event.value > 3, "some") if filtered else warm
    fold = folds.regression(x, y, steps=steps)
    program.window("w", source=source, fold=fold, size_s=60)
    return coarse_fields(program.plan())


@pytest.mark.parametrize(
    ("x", "steps", "why"),
    [
        (
            hour,
            ("1", "0.01"),
            'of which steps of 1 leave 0 and 1 alone; write steps=("0.01", "0.01")',
        ),
        (hour, ("0.001", "0.01"), ""),
        (hour, ("0.001", "1"), "field 2 is a reading of warm in steps of 0.01, and is rounded"),
        (hour, ("0.001", "0.001"), ""),
        (lambda event: round(event.value, 1), ("0.1", "0.01"), ""),
        (of_hour, ("1", "0.01"), ""),
        (lambda event: event.value > 3, ("1", "0.01"), ""),
        (lambda event: event.value / 1_000_000, ("1", "0.01"), "field 1 has numbers such as"),
        (lambda event: len(event.tags["room"]), ("1", "0.01"), ""),
        (lambda event: event.value["x"], ("1", "0.01"), ""),  # it fails, and that is found so
    ],
    ids=count(),
)
@pytest.mark.parametrize("filtered", [False, True])
@pytest.mark.parametrize("event", [{}, {"least": -40, "most": 60}, {"least": 0}])
def test_a_field_that_its_step_rounds_away_is_named(x, steps, why, filtered, event):
    lines = trend(x, value, steps, filtered=filtered, **event)
    assert len(lines) == bool(why)
    assert all(why in line for line in lines)


def test_the_readings_of_a_join_are_known_by_their_places():
    def lines(*steps):
        program = Program("shop")
        price = program.event("price", resolution="0.01", least=0, most=100)
        amount = program.event("amount", resolution="1", least=0, most=50)
        scan = scans.as_of(price, amount, within_s=1)
        trade = program.scan("trade", source=[price, amount], scan=scan, per_device=True)
        both = (lambda event: event.value[0], lambda event: event.value[1])
        mean = folds.weighted_mean(*both, steps=steps)
        program.window("w", source=trade, fold=mean, size_s=60)
        return coarse_fields(program.plan())

    assert lines("0.01", "1") == lines("0.001", "1") == []
    (line,) = lines("1", "0.01")
    assert line == (
        "window w: field 1 is a reading of price in steps of 0.01, and is rounded to steps of 1; "
        'write steps=("0.01", "0.01"), or round(..) in the field, if it is meant'
    )


@pytest.mark.parametrize(
    ("fold", "why"),
    [
        (folds.weighted_mean(lambda e: 1, value, steps=("1", "0.01")), "field 1 is 1 for each"),
        (folds.weighted_mean(value, lambda e: 1, steps=("0.01", "1")), ""),
        (folds.correlation(value, value, steps=("0.01", "0.01")), "both fields are the same"),
        (folds.regression(value, value, steps=("0.01", "0.01")), "both fields are the same"),
        (folds.regression(hour, value, steps=("0.01", "0.01")), ""),
    ],
    ids=count(),
)
def test_a_field_that_says_nothing_is_named(fold, why):
    program = Program("drift")
    warm = program.event("warm", resolution="0.01", least=-5, most=5)
    program.window("w", source=warm, fold=fold, size_s=60)
    lines = coarse_fields(program.plan())
    assert len(lines) == bool(why)
    assert all(line.startswith(f"window w: {why}") for line in lines)
