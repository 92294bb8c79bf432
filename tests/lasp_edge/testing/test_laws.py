"""`lasp_edge.testing`: the laws as assertions, with and without pytest."""

import subprocess
import sys

import pytest

from lasp_edge import folds
from lasp_edge.language.program import Program
from lasp_edge.testing import check_fold, check_program
from tests.lasp_edge.checking import planted


@pytest.mark.parametrize("fold", [folds.mean, folds.top(2), folds.histogram([1]), planted.Total])
def test_sound_folds_pass(fold):
    check_fold(fold)


def test_a_broken_law_is_an_assertion_with_the_smallest_case():
    with pytest.raises(AssertionError) as raised:
        check_fold(planted.WrongInverse())
    assert str(raised.value).splitlines() == [
        "fold: total_of_mine() breaks a law",
        "  FAIL  Retract is the inverse of combine",
        "          a = zero = (0, 0)",
        "          b = lift(-1, 0) = (1, -1)",
        "          a = (0, 0)",
        "          retract(combine(a, b), b) = (0, -2)",
    ]


def test_every_fold_of_a_program_is_checked():
    program = Program("p")
    event = program.event("e")
    program.window("sound", source=event, fold=folds.mean(), size_s=1)
    check_program(program)
    program.window("first", source=event, fold=planted.HastyColumn(), size_s=1)
    own = folds.struct(own=planted.WrongInverse())
    program.window("second", source=event, fold=own, size_s=1)
    with pytest.raises(AssertionError) as raised:
        check_program(program)
    text = str(raised.value)
    assert "window first: total_of_mine() breaks a law" in text
    assert "window second, part own: total_of_mine() breaks a law" in text
    assert "sound" not in text


def test_what_is_no_fold_or_program_is_the_callers_mistake():
    with pytest.raises(ValueError, match="a fold such as"):
        check_fold("mean")
    with pytest.raises(ValueError, match="declares no event"):
        check_program(Program("empty"))


def test_neither_pytest_nor_hypothesis_is_needed():
    code = (
        "import sys; sys.modules['pytest'] = sys.modules['hypothesis'] = None\n"
        "from lasp_edge import folds; from lasp_edge.testing import check_fold\n"
        "import lasp_edge.checking.command\n"
        "check_fold(folds.mean()); print('checked')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "checked\n"
