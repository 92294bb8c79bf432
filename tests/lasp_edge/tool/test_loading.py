"""Finding MODULE:program: what is there is loaded, what is not says which line is wrong."""

import sys
from itertools import count

import pytest

from lasp_edge.errors import Exit, NotFound, UsageError
from lasp_edge.language.declarations import Event
from lasp_edge.language.updates import run_handlers
from lasp_edge.tool.loading import load_plan

fresh = count()
GOOD = """
from lasp_edge import Program
program = Program("here")
program.event("temperature")
other = 5
unfinished = Program("unfinished")
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A current directory with a way to write modules that were never imported before."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def write(text):
        name = f"written_for_a_test_{next(fresh)}"
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
        return name

    return write


def test_a_program_of_the_current_directory_is_found(here):
    module = here(GOOD)
    assert load_plan(f"{module}:program").name == "here"


def test_the_attribute_is_program_where_none_is_named(here):
    module = here(GOOD)
    assert {load_plan(f"{module}{rest}").name for rest in ("", ":", ":program")} == {"here"}


def test_an_installed_program_is_found():
    assert load_plan("lasp_edge.examples.greenhouse:program").name == "greenhouse"


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ("{}:missing", "missing must be a Program, but nothing is there"),
        ("{}:other", "other must be a Program, but it is of type int"),
        ("{}.inner:program", "no module"),
        ("no_such_module_at_all:program", "no module 'no_such_module_at_all'"),
        ("no_such_package.inner:program", "no module"),
    ],
)
def test_what_is_not_there_is_not_found(here, spec, why):
    with pytest.raises(NotFound, match=why) as raised:
        load_plan(spec.format(here(GOOD)))
    assert raised.value.exit_code == Exit.NOT_FOUND


@pytest.mark.parametrize("spec", ["", ":program", "green-house:program", ".a", "a."])
def test_what_names_no_module_is_a_usage_error(spec):
    with pytest.raises(UsageError, match="MODULE:program is needed, such as"):
        load_plan(spec)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("\nimport no_such_package.inner", "imports 'no_such_package', which is missing"),
        ("x = (", "SyntaxError"),
        ("\n\n1 / 0", "line 3: ZeroDivisionError: division by zero"),
        ("\nraise SystemExit(5)", "line 2: SystemExit: 5"),
        ("def f():\n    raise OSError('gone')\n\nf()", "line 4: OSError: gone"),
        ("from lasp_edge import Programm", "ImportError: cannot import name 'Programm'"),
        (GOOD + "program.event('temperature')", "line 7: ValueError: event 'temperature' is decl"),
        ("from crdts import BoundedLWWSet\nBoundedLWWSet(0)", "test_.*.py line 2: ValueError"),
    ],
    ids=["import", "syntax", "arithmetic", "exit", "inner", "name", "program", "crdt"],
)
def test_a_module_that_fails_says_where(here, text, why):
    with pytest.raises(UsageError, match=why) as raised:
        load_plan(here(text))
    assert raised.value.exit_code == Exit.USAGE
    assert "\n" not in str(raised.value)


def test_a_program_that_cannot_run_is_a_usage_error(here):
    with pytest.raises(UsageError, match="program 'unfinished' declares no event"):
        load_plan(f"{here(GOOD)}:unfinished")


@pytest.mark.parametrize(
    ("spec", "meant"),
    [
        ("{0}.py:program", "a module is needed: {0}:program"),
        ("{0}:prog", "did you mean {0}:program?"),
        ("x{0}:program", "did you mean {0}?"),
    ],
)
def test_what_was_meant_by_a_program_that_is_not_there_is_told(here, spec, meant):
    name = here(GOOD)
    with pytest.raises(NotFound) as raised:
        load_plan(spec.format(name))
    assert meant.format(name) in str(raised.value)


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("folds.avg()", "did you mean mean?"),
        ("program.emit(t)", "there are alert, "),
        ("program.window('w', source=t, fold=folds.mean(), size=60)", "did you mean size_s?"),
        ("program.window('w', source=t, fold=folds.mean(), size_s=9, gap_s=5)", "there are fold, "),
        ("program.window('w', source=t, fold=Avg(), size_s=60)", "a class that extends Fold"),
        (
            "Half()",
            "lift must give a tuple with one part a column (n), whole numbers, None or bytes",
        ),
    ],
)
def test_what_was_meant_by_a_word_that_is_not_in_the_language_is_told(here, line, meant):
    name = here(f"{LANGUAGE}\n{line}\n")
    with pytest.raises(UsageError) as raised:
        load_plan(name)
    assert meant in str(raised.value)


LANGUAGE = """
from lasp_edge import Column, Fold, Op, Program, folds
program = Program("p")
t = program.event("t")
class Avg:
    pass
class Half(Fold):
    name = "half"
    columns = (Column("n", Op.SUM),)
    parts = ("n",)
    def __init__(self): self.checked()
    def lift(self, value, time_us): return 1.5
    def lower(self, partial, resolution): return {"n": partial[0]}
"""


def test_a_handler_that_cannot_be_called_is_told_with_its_own_place(here):
    name = here(GOOD + "\n@program.on_event('temperature')\ndef only(event): pass\n")
    plan = load_plan(name)
    with pytest.raises(TypeError, match=rf"takes 1 positional .*: {name}.py line \d+$"):
        run_handlers(plan, Event("temperature", 1.0, 0, "a", {}))
