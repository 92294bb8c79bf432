"""`check` warns of a fold that gives steps for units, or compares steps with units."""

import pytest

from crdts import BoundedLWWSet
from lasp_edge import Column, Fold, Op, Program, folds, scans
from lasp_edge.checking.steps import coarse_means, forgotten, in_steps, rounded_away


class Hot(Fold):
    """How many are above a level, and the greatest: both in units, where steps are given."""

    name, parts = "hot", ("hot", "most")
    columns = (Column("hot", Op.SUM), Column("most_q", Op.MAX))

    def __init__(self, level=25):
        self.level, self.parameters = level, f"{level}"

    def lift(self, value, time_us=0):
        return int(value > self.level), value

    def lower(self, partial, resolution):
        return {"hot": partial[0], "most": partial[1]}


class HotInSteps(Hot):
    """The same, as it is right."""

    name = "hot_in_steps"

    def lift(self, value, time_us=0):
        return int(value > 2_500 or value == 0), value

    def lower(self, partial, resolution):
        most = partial[1]
        return {"hot": partial[0], "most": None if most is None else resolution.real(most)}


def warm(resolution="0.01", **span):
    program = Program("p")
    return program, program.event("warm", resolution=resolution, **span)


COMPARED = "lift compares value > self.level (tests/lasp_edge/checking/test_steps.py:"


@pytest.mark.parametrize(
    ("fold", "resolution", "span", "found"),
    [
        (Hot(), "0.01", {"least": -40, "most": 60}, ["its part most is 1303", "lift compares"]),
        (folds.struct(h=Hot()), "0.01", {"most": 60}, ["its part most is", "lift compares"]),
        (Hot(2_500), "0.01", {"least": -40, "most": 60}, ["its part most is 1303"]),
        (Hot(), "0.01", {}, ["its part most is 1303"]),
        (Hot(), "1", {"least": -40, "most": 60}, []),
        (HotInSteps(), "0.01", {"least": -40, "most": 60}, []),
        (folds.max(), "0.01", {"least": -40, "most": 60}, []),
    ],
    ids=str,
)
def test_a_fold_that_takes_steps_for_units_is_named(fold, resolution, span, found):
    program, event = warm(resolution, **span)
    program.window("w", source=event, fold=fold, size_s=60)
    samples = program.declare_dynamic(BoundedLWWSet(bound=5), "samples")
    program.collect(event, into=samples)
    program.fold(samples, fold, "here")
    lines = in_steps(program.plan())
    assert len(lines) == 2 * len(found)
    for where in ("window w", "fold here"):
        of_it = [line.partition(": ")[2] for line in lines if line.startswith(where)]
        assert all(line.startswith(text) for line, text in zip(of_it, found, strict=True))


class Above(Hot):
    """How many are above 25 °C or below 2.5 °C, as of the 4 readings of an hour."""

    def lift(self, value, time_us=0):
        return int(value > self.level), 0


@pytest.mark.parametrize(
    ("level", "unit", "is_named"),
    [(25, "°C", True), (2_500, "°C", False), (4, "°C", False), (5, "°C", False), (25, "", False)],
)
def test_a_level_that_the_docstring_names_in_units_is_named_without_a_range(level, unit, is_named):
    program, event = warm(unit=unit)
    program.window("w", source=event, fold=Above(level), size_s=60)
    lines = in_steps(program.plan())
    assert [line.endswith("; write 2500 for 25") for line in lines] == [True] * is_named


def test_a_mean_that_is_rounded_down_is_told_so():
    class Mean(Spread):
        name = "rounded"

        def lower(self, partial, resolution):
            count, total, _ = partial
            return {"variance": resolution.real(total // count) if count else None}

    program = Program("oven")
    heat = program.event("heat", resolution="0.1", least=-40, most=600)
    program.window("w", source=heat, fold=Mean(), size_s=60)
    (line,) = in_steps(program.plan())
    assert line.endswith("; // in lower rounds down to whole steps: write /")


def test_it_says_what_to_write():
    program, event = warm(least=-40, most=60)
    program.window("w", source=event, fold=Hot(), size_s=60)
    lowered, compared = in_steps(program.plan())
    assert lowered.endswith(
        "is 1303 for one reading of 13.03; lower gives units: write resolution.real(..)"
    )
    assert "test_steps.py:" in compared
    assert compared.endswith(
        "and value is in steps of 0.01: 25 of them are 0.25; write 2500 for 25"
    )


@pytest.mark.parametrize(
    ("value", "resolution", "is_lost"),
    [
        (lambda event: event.value / 1_000, "1", True),
        (lambda event: event.value / 1_000, "0.001", False),
        (lambda event: event.value / 100, "1", False),
        (lambda event: 0, "1", False),
        (lambda event: int(event.value > 300), "1", False),
        (lambda event: event.value / int(event.tags["kind"]) / 1_000, "1", True),
    ],
    ids=["kilo", "kilo in milli", "percent", "nothing", "seldom", "by a tag"],
)
def test_numbers_that_a_step_rounds_to_nothing_are_named(value, resolution, is_lost):
    program, event = warm("1", least=0, most=400)
    program.map(event, value, "m", resolution=resolution)
    assert [line.partition(":")[0] for line in rounded_away(program.plan())] == ["map m"] * is_lost
    program, event = warm(resolution, least=0, most=400)
    program.window("w", source=event, fold=folds.mean(), size_s=60, value=value)
    found = [line.partition(":")[0] for line in rounded_away(program.plan())]
    assert found == ["value= of window w"] * is_lost


@pytest.mark.parametrize(
    ("most", "given", "found"), [(1, {}, 1), (1, {"resolution": "0.01"}, 0), (100, {}, 0)]
)
def test_a_mean_over_time_of_a_switch_needs_a_finer_step(most, given, found):
    program = Program("pumps")
    on = program.event("on", resolution="1", least=0, most=most)
    scan = scans.time_weighted_mean(every_s=60, **given)
    program.scan("duty", source=on, scan=scan, per_device=True)
    assert len(coarse_means(program.plan())) == found


class Spread(Fold):
    """The variance, of columns in steps and in squares of steps."""

    name, parts = "spread", ("variance",)
    columns = (Column("n", Op.SUM), Column("total_q", Op.SUM), Column("squares_q", Op.SUM))
    is_right = True

    def lift(self, value, time_us=0):
        return 1, value, value * value

    def lower(self, partial, resolution):
        count, total, squares = partial
        if not count:
            return {"variance": None}
        mean, step = resolution.real(total) / count, resolution.exact
        more = step if self.is_right else 1
        return {"variance": float(squares * step * more) / count - mean * mean}


@pytest.mark.parametrize(("is_right", "found"), [(True, 0), (False, 1)])
def test_a_square_takes_the_step_twice(is_right, found):
    fold = Spread()
    fold.is_right = is_right
    program = Program("oven")
    heat = program.event("heat", resolution="0.1", least=-40, most=600)
    program.window("w", source=heat, fold=fold, size_s=60)
    lines = in_steps(program.plan())
    assert len(lines) == found
    assert all("a sum of squares takes the step twice" in line for line in lines)


class NoNumber(Spread):
    """Gives what is no number, which its law shows."""

    def lower(self, partial, resolution):
        return {"variance": float("nan")}


def test_what_is_no_number_is_not_compared_in_finer_steps():
    program = Program("oven")
    heat = program.event("heat", resolution="0.1", least=-40, most=600)
    program.window("w", source=heat, fold=NoNumber(), size_s=60)
    assert in_steps(program.plan()) == []


class Converted(Fold):
    """The mean in another unit."""

    name, parts = "converted", ("mean",)
    columns = (Column("n", Op.SUM), Column("total_q", Op.SUM))

    def __init__(self, convert):
        self.convert = convert

    def lift(self, value, time_us=0):
        return 1, self.convert(value)

    def lower(self, partial, resolution):
        count, total = partial
        return {"mean": resolution.real(total) / count if count else None}


@pytest.mark.parametrize(
    ("unit", "convert", "write"),
    [
        ("°C", lambda value: value + 273, "write 2730 for 273"),
        ("°C", lambda value: value + 2_732, None),
        ("°C", lambda value: value * 9 // 5 + 32, "write 320 for 32"),
        ("°C", lambda value: value * 9 // 5 + 320, None),
        ("°C", lambda value: value + 18, None),  # a sensor that is 1.8 °C off
        ("°C", lambda value: max(0, value - 200), None),
        ("°F", lambda value: (value - 32) * 5 // 9, "write 320 for 32"),
        ("°F", lambda value: (value - 320) * 5 // 9, None),
        ("", lambda value: value + 273, None),
    ],
    ids=["K", "right", "°F", "°F right", "off", "level", "of °F", "of °F right", "no unit"],
)
@pytest.mark.parametrize("span", [{}, {"least": -40, "most": 60}])
def test_what_lies_between_two_units_is_added_in_steps(unit, convert, write, span):
    program, event = warm("0.1", unit=unit, **span)
    program.window("w", source=event, fold=Converted(convert), size_s=60)
    lines = in_steps(program.plan())
    assert len(lines) == (write is not None)
    assert all(line.startswith("window w: lift ") for line in lines)
    assert all(line.endswith(write) for line in lines)
    program, event = warm("1", unit=unit, **span)
    program.window("w", source=event, fold=Converted(convert), size_s=60)
    assert in_steps(program.plan()) == []


@pytest.mark.parametrize(
    ("fold", "value", "is_named"),
    [
        (folds.mean(), lambda event, at: at["off"], True),
        (folds.struct(n=folds.count(), least=folds.min()), lambda event, at: at["off"], True),
        (folds.mean(), lambda event, at: event.value - at["off"], False),
        (folds.mean(), lambda event, at: max(x.value for x in [event]), False),
        (folds.sum(), lambda event, at: at["off"], False),  # each reading costs that
        (folds.struct(all=folds.sum(), mean=folds.mean()), lambda event, at: at["off"], False),
        (folds.count(), lambda event, at: at["off"], False),
        (HotInSteps(), lambda event, at: at["off"], False),
    ],
    ids=["mean", "struct", "right", "inner", "sum", "sum inside", "count", "own"],
)
def test_a_mean_of_numbers_that_are_of_no_reading_is_named(fold, value, is_named):
    program, event = warm()
    off = program.parameter("off", "3", resolution="0.01")
    program.window("w", source=event, fold=fold, size_s=60, value=value, uses=(off,))
    lines = forgotten(program.plan())
    assert [line.partition(":")[0] for line in lines] == ["value= of window w"] * is_named
