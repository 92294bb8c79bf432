"""Random histories of shared variables: parts of states as they reach a lake, and their join.

Parts are any states of a type, those of cloned devices included, and the deltas of replicas that
write and hear of each other now and then. They come in any order, some of them twice.
"""

import json
from collections.abc import Iterator
from functools import reduce
from operator import or_
from typing import Any, NamedTuple

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from cloud_tier.lake.shared import SharedMeaning
from cloud_tier.shared.forms import FORMS
from crdts import (
    ControlLog,
    GCounter,
    GSet,
    Lattice,
    MVRegister,
    ORMap,
    PNCounter,
    Product,
    TwoPSet,
)
from crdts.causal import Causal
from crdts.chain_map import DeviceMap
from crdts.plain import encoded
from lasp_edge.protocol.acceptance import SharedNews
from tests.crdts.states import KINDS, REPLICAS, Kind, compositions


class History(NamedTuple):
    """What came in of one variable, and what it joins to."""

    meaning: SharedMeaning
    parts: list[SharedNews]
    joined: Lattice


@st.composite
def written(draw: Any, kind: Kind) -> list[Lattice]:
    """Deltas of replicas of which each hears some of the others."""
    states = {replica: kind.bottom() for replica in REPLICAS}
    deltas = []
    for _ in range(draw(st.integers(1, 8))):
        writer = draw(st.sampled_from(REPLICAS))
        try:
            delta = draw(kind.writes)(states[writer], writer)
        except ValueError:  # what is not allowed is not written
            continue
        deltas.append(delta)
        for replica in {writer, draw(st.sampled_from(REPLICAS))}:
            states[replica] |= delta
    return deltas


@st.composite
def arrived(draw: Any, kind: Kind) -> list[Lattice]:
    """Parts of states in the order in which they reach a lake."""
    parts = draw(written(kind))
    if kind.states is not NOTHING:
        states = kind.states if kind.cloned is None else kind.states | kind.cloned
        parts += draw(st.lists(states, max_size=3))
    again = draw(st.lists(st.sampled_from(parts), max_size=3)) if parts else []
    return draw(st.permutations([*parts, *again]))


NOTHING = st.nothing()


def histories(count: int) -> Iterator[History]:
    """Yield `count` histories of each type, and as many of types made of others."""
    stream = 0
    kinds = [st.just(KINDS[type_]) for type_ in FORMS] + [compositions()] * 3
    for kind in kinds:
        for bottom, parts in _drawn(kind, count):
            stream += 1
            meaning = SharedMeaning(f"v{stream}", stream, bottom)
            came = [SharedNews(meaning.name, stream, part, n) for n, part in enumerate(parts)]
            yield History(meaning, came, reduce(or_, parts, bottom))


def _drawn(kind: st.SearchStrategy[Kind], count: int) -> list[tuple[Lattice, list[Lattice]]]:
    found = []

    @settings(max_examples=count, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(st.data())
    def draw(data: Any) -> None:
        made = data.draw(kind)
        found.append((made.bottom(), data.draw(arrived(made))))

    draw()
    return found


def value_rows(state: Lattice, part: str = "", keys: tuple[Any, ...] = ()) -> set[Any]:
    """Return (part, keys, value) as bytes, one for each row that a reader is to see."""
    if isinstance(state, PNCounter | GCounter):
        found = [(keys, state.value)] if state != state.bottom() else []
    elif isinstance(state, Product) and not isinstance(state, TwoPSet):
        rows: set[Any] = set()
        for at, inner in enumerate(state.parts):
            rows |= value_rows(inner, f"{part}.{at}" if part else str(at), keys)
        return rows
    elif isinstance(state, ORMap):
        of_keys = [value_rows(state[key], part, (*keys, key)) for key in state]
        return set().union(*of_keys)
    elif isinstance(state, DeviceMap | ControlLog):
        found = [((*keys, _plain(at)), _plain(value)) for at, value in state.value.items()]
    elif isinstance(state, Causal) and not isinstance(state.value, frozenset | tuple):
        found = [(keys, state.value)] if state.dots else []
    elif isinstance(state, GSet | TwoPSet | MVRegister | Causal):
        found = [(keys, value) for value in state.value]
    else:
        found = [] if state == state.bottom() else [(keys, state.value)]
    return {(part, encoded(at), encoded(value)) for at, value in found}


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, tuple) else value


def read_rows(rows: list[dict[str, Any]]) -> set[Any]:
    """Return the same of rows that were read."""
    return {
        (row["part"], encoded(_of(row["key"] or "[]")), encoded(_of(row["value"]))) for row in rows
    }


def _of(text: str) -> Any:
    return _tuples(json.loads(text))


def _tuples(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_tuples, value))
    if isinstance(value, dict):
        return bytes.fromhex(value["bytes"]) if "bytes" in value else float(value["float"])
    return value
