"""What a docstring claims that a type costs is what the benchmark measures."""

from simulations.benchmarks.crdts import claims


def test_no_claim_of_a_docstring_is_exceeded():
    exceeded = [claim for claim in claims() if claim.measured > claim.at_most]
    assert not exceeded
