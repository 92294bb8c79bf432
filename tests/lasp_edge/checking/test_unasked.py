"""A parameter that an operator can set, and no function of the window asks for, is named."""

import pytest

from lasp_edge import Program, folds
from lasp_edge.checking.unasked import unasked

program = Program("press")
force = program.event("force", resolution="0.1")
gain = program.parameter("gain", "1", resolution="0.1")
limit = program.parameter("limit", "5", resolution="0.1")


def scaled(value, at):
    return value * at[gain]


FUNCTIONS = {
    "both": {"value": lambda event, at: event.value * at[gain] - at["limit"]},
    "one": {"value": lambda event, at: event.value * at[gain]},
    "each in one": {
        "value": lambda event, at: scaled(event.value, at),
        "where": lambda event, at: event.value > at[limit],
    },
    "the fold": {
        "value": lambda event, at: scaled(event.value, at),
        "fold": lambda at: folds.quantile(0.5, relative_error=0.01 * at[limit]),
    },
    "all": {"where": lambda event, at: event.value > sum(at.values.values())},
    "none": {"where": lambda event, at: event.value > 0},
}
LACKING = {"one": ["limit"], "none": ["gain", "limit"]}


@pytest.mark.parametrize("case", FUNCTIONS)
def test_a_parameter_that_no_function_asks_for_is_named(case):
    window = {"source": force, "fold": folds.mean(), "size_s": 60, "uses": (gain, limit)}
    program.window(case, **window | FUNCTIONS[case])
    found = [line for line in unasked(program.plan()) if line.startswith(f"window {case}:")]
    text = f"window {case}: no function of it asks for parameter "
    assert [line.removeprefix(text).partition(":")[0] for line in found] == LACKING.get(case, [])
