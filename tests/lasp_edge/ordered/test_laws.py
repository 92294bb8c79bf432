"""The laws of all stages and scans, over one table: what is pushed is what the oracle says."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lasp_edge import scans
from lasp_edge.ordered.deltas import applied, composed, minus, without_same
from lasp_edge.ordered.oracle import outputs_of
from lasp_edge.ordered.scan import Scan
from tests.lasp_edge.ordered.support_streams import (
    SCANS,
    STAGES,
    as_bytes,
    drawn_change,
    graph_of,
    nodes_of,
    seeded,
)

SEEDS = st.integers(0, 2**32)


def followed(names, seed, *, changes=30, frontiers=True):
    """Change a content at random, and compare the last stream with the oracle after each batch."""
    rng, graph, last = seeded(seed), graph_of(names), str(len(names) - 1)
    content, said, frontier_us = {}, {}, None
    while changes > 0:
        delta = {}
        for _ in range(rng.randrange(1, 6)):
            changes -= 1
            place, old, new = drawn_change(rng, content)
            delta = composed(delta, {place: (old, new)})
            content = applied({place: (old, new)}, content)
        if frontiers and rng.random() < 0.4:
            frontier_us = max(frontier_us or 0, rng.randrange(26) * 1_000_000)
        found = graph.update({"x": delta}, frontier_us).get(last, {})
        assert all(said.get(place) == old for place, (old, _) in found.items())
        said = applied(found, said)
        truth = outputs_of(nodes_of(names), {"x": content}, frontier_us)[last]
        assert as_bytes(said) == as_bytes(truth)


def test_every_scan_is_in_the_table():
    kinds = {getattr(scans, name) for name in scans.__all__} - {Scan, scans.Synchronised}
    assert {type(scan) for scan in SCANS.values()} == kinds
    assert all(issubclass(kind, Scan) for kind in kinds)


@pytest.mark.parametrize("name", STAGES)
def test_a_stage_says_after_a_change_what_it_says_of_all(name):
    @settings(max_examples=20)
    @given(SEEDS)
    def check(seed):
        followed([name], seed)

    check()


@given(st.lists(st.sampled_from(sorted(STAGES)), min_size=3, max_size=3), SEEDS)
def test_three_stages_one_after_the_other_say_what_the_oracle_says(names, seed):
    followed(names, seed, changes=20)


@pytest.mark.parametrize("name", STAGES)
def test_the_order_and_number_of_arrivals_do_not_matter(name):
    rng, content = seeded(7), {}
    for _ in range(40):
        place, old, new = drawn_change(rng, content)
        content = applied({place: (old, new)}, content)
    truth = outputs_of(nodes_of([name]), {"x": content}, 30_000_000)["0"]
    for _ in range(5):
        graph, said = graph_of([name]), {}
        arrivals = [*content.items(), *content.items()]
        rng.shuffle(arrivals)
        while arrivals:
            batch, arrivals = arrivals[:6], arrivals[6:]
            said = applied(graph.update({"x": {p: (None, e) for p, e in batch}}).get("0", {}), said)
        said = applied(graph.update({}, 30_000_000).get("0", {}), said)
        assert as_bytes(said) == as_bytes(truth)


CONTENTS = st.dictionaries(st.integers(0, 5), st.sampled_from([1, 1.0, True, 2]), max_size=4)


def alike(a, b):
    return type(a) is type(b) and a == b


def typed(content):
    return {place: (type(value), value) for place, value in content.items()}


@given(CONTENTS, CONTENTS, CONTENTS, CONTENTS)
def test_deltas_lead_from_content_to_content_and_compose(a, b, c, d):
    ab, bc, cd = minus(b, a, alike), minus(c, b, alike), minus(d, c, alike)
    assert typed(applied(ab, a)) == typed(b)
    assert typed(applied(composed(ab, bc, alike), a)) == typed(c)
    left = composed(composed(ab, bc, alike), cd, alike)
    right = composed(ab, composed(bc, cd, alike), alike)
    assert typed(left) == typed(right)
    assert composed(ab, minus(a, b, alike), alike) == {}
    assert without_same(ab, alike) == ab
