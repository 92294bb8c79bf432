"""`lasp_edge.testing`: the laws as assertions, with and without pytest."""

import subprocess
import sys

import pytest

from crdts import Lattice
from lasp_edge import folds
from lasp_edge.language.program import Program
from lasp_edge.testing import check_crdt, check_fold, check_program
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


class SumBox(Lattice):
    """A sum that is no join, as people first write one; and how it can go wrong in other ways."""

    def __init__(self, value=0, join=lambda a, b: a + b, plain=int):
        self.total, self.join, self.plain = value, join, plain

    def __ior__(self, other):
        self.total = self.join(self.total, other.total)
        return self

    def __eq__(self, other):
        return self.total == other.total

    __hash__ = None

    def __repr__(self):
        return f"SumBox({self.total})"

    def bottom(self):
        return type(self)(0, self.join, self.plain)

    def irreducibles(self):
        return iter([self] if self.total else [])

    value = property(lambda self: self.total)

    def to_plain(self):
        return self.plain(self.total)

    @classmethod
    def from_plain(cls, plain):
        return cls(plain)


BROKEN = {
    "a sum": ({}, "a | a == a: SumBox\\(2\\) is not SumBox\\(1\\), with a = SumBox\\(1\\)"),
    "the first": ({"join": lambda a, b: a or b}, "a \\| b == b \\| a: SumBox"),
    "a plain form that forgets": ({"join": max, "plain": lambda total: 0}, "from_plain"),
    "a join that raises": ({"join": lambda a, b: a / b}, "ZeroDivisionError.*test_laws.py"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_crdt_that_is_no_lattice_is_shown_with_its_smallest_states(case):
    given, why = BROKEN[case]
    with pytest.raises(AssertionError, match=f"SumBox breaks a law: .*{why}"):
        check_crdt([SumBox(n, **given) for n in range(3)])
    check_crdt([SumBox(n, join=max) for n in range(3)])


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
