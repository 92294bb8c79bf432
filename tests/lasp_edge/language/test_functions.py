"""What is not a plain function is refused where a program names it: nothing of it would run."""

import functools
import re

import pytest

from crdts import BoundedLWWSet, GSet
from lasp_edge import Program, folds
from lasp_edge.dataflow import cardinality


@pytest.fixture
def program():
    return Program("house")


@pytest.fixture
def door(program):
    return program.event("door")


@pytest.fixture
def mean(program):
    samples = program.declare_dynamic(BoundedLWWSet(bound=1), "samples")
    return program.fold(samples, folds.mean(), "mean")


async def never(_event, _update):
    raise AssertionError


def half(_event, _update):
    yield


async def neither(_event, _update):
    yield


@pytest.mark.parametrize("function", [never, half, neither])
def test_a_function_that_would_never_run_is_refused(program, door, mean, function):
    opened = program.declare(GSet(), "opened")
    why = f"{function.__name__} would never run: write it without async and yield"
    decorators = {
        "on_event": program.on_event(door),
        "on_value": program.on_value(mean),
        "on_threshold": program.on_threshold(opened, cardinality(1)),
    }
    for name, decorator in decorators.items():
        with pytest.raises(ValueError, match=f"^{name}: {why}"):
            decorator(function)
    with pytest.raises(ValueError, match=f"^window 'w': key: {why}"):
        program.window("w", source=door, fold=folds.count(), size_s=60, key=function)


def test_what_can_be_called_and_is_no_function_is_fine(program, door):
    program.on_event(door)(functools.partial(lambda *_words: None))


def test_a_decorator_without_its_name_is_told(program):
    for decorator, such in {"on_event": "on_event(door)", "on_value": "on_value(mean)"}.items():
        why = f"; a decorator takes the name, as in @program.{such}"
        with pytest.raises(ValueError, match=re.escape(why)):
            getattr(program, decorator)(lambda _event, _update: None)


def test_a_variable_in_place_of_a_fold_is_named(program):
    samples = program.declare_dynamic(BoundedLWWSet(bound=1), "samples")
    with pytest.raises(ValueError, match=r"is needed, not the variable 'samples'$"):
        program.fold("mean", samples, folds.mean())
