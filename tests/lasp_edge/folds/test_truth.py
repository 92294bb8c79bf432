"""Any and all, against Python's own."""

from hypothesis import given
from hypothesis import strategies as st

from lasp_edge import folds
from lasp_edge.folds.numbers import Resolution


@given(st.lists(st.integers(-1, 1), max_size=6))
def test_any_and_all_are_those_of_python(values):
    fold = folds.struct(any=folds.any(), all=folds.all())
    lowered = fold.lower(fold.lift_column(values, [0] * len(values)), Resolution("1"))
    assert lowered == {"any": any(values), "all": all(values)}
    assert {type(value) for value in lowered.values()} == {bool}
