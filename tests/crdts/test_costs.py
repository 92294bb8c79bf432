"""What a docstring claims that a type costs is what is measured here."""

import inspect
import sys

import pytest

from crdts.wire import TYPES
from tests.crdts.claims import claims


@pytest.fixture(scope="module")
def measured():
    return list(claims())


def test_no_claim_of_a_docstring_is_exceeded(measured):
    exceeded = [claim for claim in measured if claim.measured > claim.at_most]
    assert not exceeded


def test_no_type_escapes_its_claims(measured):
    assert {claim.kind for claim in measured} == set(TYPES)


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.__name__)
def test_every_type_states_what_it_costs_and_what_can_grow(kind):
    module = inspect.getdoc(sys.modules[kind.__module__])
    cost = module.partition("\nCost: ")[2].partition("\n\n")[0]
    assert cost, f"{kind.__module__} says nothing"
    assert "grow" in cost
