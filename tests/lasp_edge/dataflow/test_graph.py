"""The graph: an order in which inputs come first, whatever the order of declaration was."""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lasp_edge.dataflow.graph import Graph

NAMES = "abcdefg"
edges = st.lists(
    st.tuples(st.sampled_from(NAMES), st.lists(st.sampled_from(NAMES), min_size=1, max_size=3)),
    max_size=12,
)


def reachable(sources, name):
    """Return all that `name` is made from, by a fixed point."""
    found = set()
    while True:
        more = found | {s for at in (name, *found) for s in sources[at]}
        if more == found:
            return found
        found = more


@given(edges)
def test_inputs_come_first_and_cycles_are_refused_with_a_true_way(asked):
    graph = Graph()
    sources = dict.fromkeys(NAMES, ())
    for name in NAMES:
        graph.add(name)
    for target, wanted in asked:
        if sources[target]:
            continue
        if any(source == target or target in reachable(sources, source) for source in wanted):
            with pytest.raises(ValueError, match="made from itself") as refused:
                graph.derive(target, wanted)
            way = re.findall(r"\b([a-g])\b(?= ->|$)", str(refused.value).split(" as in ")[1])
            assert way[0] == way[-1] == target
            assert way[-2] in wanted
            for source, made in pairwise(way[:-1]):
                assert source in sources[made]
        else:
            graph.derive(target, wanted)
            sources[target] = tuple(wanted)
    assert graph.sources == sources
    for name in NAMES:
        assert set(graph.before(name)) == reachable(sources, name)
        assert set(graph.after(name)) == {n for n in NAMES if name in reachable(sources, n)}
        seen = {name}
        for after in graph.after(name):
            touched = [source for source in sources[after] if source in graph.after(name)]
            assert seen >= set(touched)
            seen.add(after)
