"""Every public name has an example that a doctest runs, and stands in the reference."""

import inspect
import subprocess
import sys
from doctest import DocTestFinder
from importlib import import_module
from importlib.util import find_spec

import pytest

from lasp_edge import Program, Update
from simulations.reference import EXAMPLE, MODULES, described, public
from tests.support_missing import lacks
from tests.support_readme import CHECKOUT, block

NAMES = {
    f"{module}.{name}": thing
    for module in MODULES
    for name, thing in public(import_module(module))
    if inspect.isclass(thing) or inspect.isfunction(thing)
}
GIVEN = {"lasp_edge.Window", "lasp_edge.dataflow.Definition", "lasp_edge.dataflow.News"}
"""What other names give, whose examples show it."""
UNRUN = {"cloud_tier.Lake", *GIVEN}
"""Those whose example is no doctest: Lake needs a lake."""
METHODS = {
    f"{kind.__name__}.{name}": method
    for kind in (Program, Update)
    for name, method in inspect.getmembers(kind, inspect.isfunction)
    if not name.startswith("_")
}
LIKE_ANOTHER = {"Program.filter", "Program.flat_map", "Program.plan", "Program.show"}
"""Methods that the example of another one, or of the class, shows."""


@pytest.mark.parametrize("name", sorted(NAMES.keys() - UNRUN))
def test_every_public_name_has_an_example_that_runs(name):
    thing = NAMES[name]
    assert (thing.__doc__ or "").strip(), name
    assert EXAMPLE in described(thing)
    module = sys.modules[thing.__module__]
    found = DocTestFinder(recurse=False)
    examples = [each for of in (thing, module) for test in found.find(of) for each in test.examples]
    assert examples  # `pytest --doctest-modules` runs all of them


@pytest.mark.parametrize("name", sorted(METHODS.keys() - LIKE_ANOTHER))
def test_every_method_that_users_call_has_an_example(name):
    text = inspect.getdoc(METHODS[name])
    assert EXAMPLE in text or "    program." in text


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
