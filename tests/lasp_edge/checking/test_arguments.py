"""Folds and scans of users that take arguments: which of them have a fingerprint that tells it."""

import pytest

from lasp_edge import Column, Fold, Op, Program, folds, scans
from lasp_edge.checking.arguments import unnamed_arguments
from lasp_edge.checking.scans import written


class Above(Fold):
    name, parts, columns = "above", ("n",), (Column("n", Op.SUM),)

    def __init__(self, level, shown="n"):
        self.level, self.shown = level, shown

    def lift(self, value, time_us=0):
        return (int(self._is_above(value)),)

    def _is_above(self, value):
        return value > self.level

    def lower(self, partial, resolution):
        return {self.shown: partial[0]}


class Named(Above):
    def __init__(self, level):
        super().__init__(level)
        self.parameters = str(level)


class NamedByItsName(Above):
    def __init__(self, level):
        super().__init__(level)
        self.name = f"above_{level}"


class NamedByAConstant(Above):
    def __init__(self, level):
        super().__init__(level)
        self.parameters = "level"


class NamedForAll(Above):
    parameters = "level"


class WithoutArguments(Above):
    def __init__(self):
        super().__init__(200)


class Steps(scans.Scan):
    name, zero, parts = "steps", 0, {"step": "1"}

    def __init__(self, width):
        self.width = width

    def step(self, state, event):
        return state, [int(event.value // self.width)]


class NamedSteps(Steps):
    @property
    def fingerprint(self):
        return f"{self.name} {self.version} {self.width}"


def of_fold(fold):
    program = Program("house")
    program.window("w", source=program.event("t", resolution="0.1"), fold=fold, size_s=60)
    return unnamed_arguments(program.plan())


def of_scan(scan):
    program = Program("house")
    t = program.event("t", resolution="0.1")
    program.scan("s", source=t, scan=scan, per_device=True)
    return unnamed_arguments(program.plan())


def test_an_argument_of_partials_that_nothing_names_is_found():
    place = written(Above(200))
    line = (
        f"window w: fold above ({place}) depends on level, which it does not name: what was "
        "made with another value would be joined with it; write self.parameters = "
        'f"{self.level}" in __init__'
    )
    assert of_fold(Above(200)) == [line]
    assert of_fold(folds.struct(a=Above(200), b=folds.count())) == [
        line.replace("w:", "w, part a:")
    ]


def test_what_it_says_to_write_is_right():
    program = Program("house")
    t = program.event("t", resolution="0.1")
    one, other = (program.window(f"w{n}", source=t, fold=Named(n), size_s=60) for n in (200, 250))
    assert one.stream != other.stream


@pytest.mark.parametrize("fold", [Named(200), NamedByItsName(200), WithoutArguments()])
def test_a_fold_that_names_its_arguments_or_has_none_is_not_found(fold):
    assert of_fold(fold) == []


def test_an_argument_of_a_scan_is_found():
    (line,) = of_scan(Steps(5))
    assert line == (
        f"scan s: steps ({written(Steps(5))}) depends on width, which it does not name: what was "
        "made with another value would be joined with it; give it a property fingerprint, "
        '"{self.name} {self.version} {self.width}"'
    )
    assert of_scan(NamedSteps(5)) == []


@pytest.mark.parametrize("fold", [NamedByAConstant(200), NamedForAll(200)])
def test_an_argument_that_only_a_constant_names_is_found(fold):
    (line,) = of_fold(fold)
    assert "depends on level, which it does not name" in line
