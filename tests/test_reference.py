"""Every public name has an example that runs on its own, and stands in the reference."""

import doctest
import inspect
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec

import pytest

from cloud_tier import Lake
from lasp_edge import Program, Update
from lasp_edge.dataflow import Dataflow
from lasp_edge.testing import ReplayOutcome
from simulations.reference import MODULES, described, public
from tests.support_missing import lacks
from tests.support_readme import CHECKOUT, block

NAMES = {
    f"{module}.{name}": thing
    for module in MODULES
    for name, thing in public(import_module(module))
    if inspect.isclass(thing) or inspect.isfunction(thing)
}
KINDS = (Program, Update, Dataflow, ReplayOutcome, Lake)
"""The classes whose methods users call most."""
METHODS = {
    f"{kind.__name__}.{name}": method
    for kind in KINDS
    for name, method in inspect.getmembers(kind, inspect.isfunction)
    if not name.startswith("_")
}


def examples(thing):
    return doctest.DocTestParser().get_examples(inspect.getdoc(thing) or "")


def failures_of(thing, **known):
    """Run the examples of a docstring with nothing but what is known, and what they import."""
    test = doctest.DocTest(examples(thing), known, thing.__name__, None, None, None)
    told = []
    doctest.DocTestRunner(verbose=False).run(test, out=told.append)
    return "".join(told)


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_public_name_has_an_example_that_runs_on_its_own(name):
    assert examples(NAMES[name])
    assert failures_of(NAMES[name], **{name.rpartition(".")[2]: NAMES[name]}) == ""


@pytest.mark.parametrize("name", sorted(METHODS))
def test_every_method_that_users_call_has_an_example_or_that_of_its_class_calls_it(name):
    kind, method = name.split(".")
    cls = next(each for each in KINDS if each.__name__ == kind)
    if examples(METHODS[name]):
        assert failures_of(METHODS[name], **{kind: cls}) == ""
    else:
        assert f".{method}(" in "".join(each.source for each in examples(cls))


def test_the_example_of_a_lake_is_that_of_the_page_which_a_test_runs():
    text = described(NAMES["cloud_tier.Lake"])
    assert 'Lake("lake").windows("temperature_by_room")' in text
    assert 'lake.windows("temperature_by_room")' in block("analysts")


def test_all_names_that_an_annotation_needs_are_exported():
    import lasp_edge  # noqa: PLC0415 - as a user does

    needed = "Event EventType FoldValue Parameter ParameterValues Partial Resolution Stream"
    assert {*needed.split(), "StreamRow", "Update", "Variable"} <= set(lasp_edge.__all__)
    assert all(hasattr(lasp_edge, name) for name in lasp_edge.__all__)


@pytest.mark.slow
def test_one_command_makes_pages_of_all_public_names(tmp_path):
    if find_spec("pdoc") is None:
        lacks("pdoc is not installed; type: make setup")
    words = [sys.executable, "-m", "simulations.reference", str(tmp_path)]
    done = subprocess.run(words, cwd=CHECKOUT, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    for module in MODULES:
        page = (tmp_path / (module.replace(".", "/") + ".html")).read_text()
        for name, _ in public(import_module(module)):
            assert f'id="{name}"' in page, f"{module}.{name}"
