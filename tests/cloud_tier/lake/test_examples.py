"""The examples of what reads a lake give what they show, on a lake of two rooms."""

from doctest import SKIP, DocTestParser, DocTestRunner
from inspect import getdoc, getmembers, isfunction

import pytest

from cloud_tier import Lake
from cloud_tier.lake.results import StreamRows, ValueRows, WindowRows
from cloud_tier.lake.shared import SharedValues
from tests.cloud_tier.lake.support_example import example

METHODS = {
    f"{kind.__name__}.{name}": getdoc(method)
    for kind in (Lake, WindowRows, ValueRows, StreamRows, SharedValues)
    for name, method in getmembers(kind, lambda each: isfunction(each) or type(each) is property)
    if not name.startswith("_") and name != "spark_frame"  # Spark's own tests run that
}


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    return Lake(example(tmp_path_factory.mktemp("example") / "lake"))


@pytest.mark.parametrize("name", METHODS)
def test_the_example_of_a_method_gives_what_it_shows(name, lake):
    test = DocTestParser().get_doctest(METHODS[name], {"lake": lake}, name, None, 0)
    assert test.examples, "each method has one"
    if name.endswith(".to_pandas"):
        pytest.importorskip("pandas", reason="the extra `bench` brings it, in CI")
    for each in test.examples:
        del each.options[SKIP]  # where no lake is at hand
    runner = DocTestRunner(verbose=False)
    said = []
    runner.run(test, out=said.append)
    assert not said, "".join(said)
