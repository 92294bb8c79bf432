"""No two columns are shown under one name, and no part is taken for a time."""

from itertools import permutations

import pytest

from lasp_edge import Program, folds
from lasp_edge.language.described import WINDOW, definition_of, descriptions
from lasp_edge.language.shown_names import shown_names, shown_times


def meaning_of(fold):
    program = Program("names")
    event = program.event("temperature", resolution="0.01")
    program.window("w", source=event, fold=fold, size_s=60)
    plain = {name: text for kind, name, text in descriptions(program.plan()) if kind == WINDOW}
    return definition_of(WINDOW, "w", plain["w"])


@pytest.mark.parametrize(
    ("fold", "expected"),
    [
        (folds.last(), {"last": "last", "last_us": "last_time"}),
        (folds.struct(end=folds.max()), {"end": "end", "end_us": "end_time"}),
        (folds.struct(Start=folds.max()), {"Start": "Start", "start_us": "start_time"}),
        (
            folds.struct(last=folds.mean(), last_us=folds.max()),
            {"last": "last", "last_us": "last_us"},
        ),
        (
            folds.struct(last=folds.last(), last_time=folds.max()),
            {"last": "last", "last_us": "last_time_time", "last_time": "last_time"},
        ),
        (folds.mean(), {"start_us": "start", "end_us": "end", "mean": "mean"}),
    ],
)
def test_a_time_gets_a_name_that_no_part_has(fold, expected):
    meaning = meaning_of(fold)
    columns = ("key", "start_us", "end_us", *meaning.value_columns, "status")
    found = shown_names(columns, meaning)
    assert {column: found[column] for column in expected} == expected
    assert len({name.casefold() for name in found.values()}) == len(columns)
    assert {column for column in columns if found[column] != column} == shown_times(
        columns, meaning
    )


@pytest.mark.parametrize("columns", list(permutations(["a", "a_us", "a_time_us", "A_time"])))
def test_names_differ_in_any_order_of_the_columns(columns):
    found = shown_names(columns)
    assert len({name.casefold() for name in found.values()}) == len(columns)
    assert (found["a"], found["A_time"]) == ("a", "A_time")
