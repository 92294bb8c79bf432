"""Bytes from anyone become a state or a ValueError, and nothing else."""

import random

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crdts import GCounter, ORSet, Pair, Product, Replica, decode, encode
from crdts.wire import MAX_BYTES, MAX_DEPTH, TYPES
from tests.crdts.states import KINDS

ME = Replica(1, 7, "kitchen")


def extension(kind, plain):
    return msgpack.packb(msgpack.ExtType(TYPES.index(kind), msgpack.packb(plain)))


def refused(data, reason):
    with pytest.raises(ValueError, match=reason):
        decode(data)


def test_codes_are_never_reordered():
    names = "GCounter PNCounter Pair Product OwnedMap Frontier BoundedLWWSet Max Min LWWRegister"
    names += " IVar GSet TwoPSet ORSet MVRegister EWFlag DWFlag ORMap Membership DerivedSet"
    names += " ControlLog"
    assert [kind.__name__ for kind in TYPES] == names.split()


@given(st.sampled_from(TYPES).flatmap(lambda kind: KINDS[kind].states), st.randoms())
def test_damaged_bytes_are_a_state_or_a_value_error(state, damage):
    data = bytearray(encode(state))
    for _ in range(damage.randint(1, 3)):
        data[damage.randrange(len(data))] = damage.randrange(256)
    for broken in (bytes(data), bytes(data[: damage.randrange(len(data))])):
        try:
            read = decode(broken)
        except ValueError:
            continue
        assert encode(read) == broken


@given(st.binary(max_size=40), st.sampled_from(TYPES))
def test_noise_is_a_state_or_a_value_error(noise, kind):
    for data in (noise, msgpack.packb(msgpack.ExtType(TYPES.index(kind), noise))):
        try:
            decode(data)
        except ValueError:
            continue


texts = st.text(max_size=3)
plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=12,
)


@given(plain, st.sampled_from(TYPES))
def test_well_formed_nonsense_is_a_state_or_a_value_error(nonsense, kind):
    try:
        decode(extension(kind, nonsense))
    except ValueError:
        return


def test_a_reason_says_what_was_needed_and_what_came():
    refused(b"", "incomplete|well-formed")
    refused(msgpack.packb([1, 2]), "one msgpack extension value, got 3 bytes of something else")
    refused(encode(GCounter()) + b"x", "well-formed msgpack")
    refused(msgpack.packb(msgpack.ExtType(99, b"\xc0")), "a type code below 21, got 99")
    refused(msgpack.packb(msgpack.Timestamp(1)), "extension value|something else")
    refused(extension(GCounter, [1]), "a counter needs a map by device, got tuple")
    refused(extension(GCounter, {"d": [1, 2]}), "3 integers a replica of 'd'")
    refused(extension(GCounter, {"d": [2**30, 2, 3]}), "an incarnation needs an integer from 0 to")
    refused(extension(GCounter, {"d": [1, 2, 0]}), "a total needs an integer from 1 to")
    refused(extension(GCounter, {"d" * 256: [1, 2, 3]}), "a device name needs text of at most 255")


def test_another_spelling_of_a_state_is_refused():
    refused(extension(GCounter, {"d": [2, 0, 1, 1, 0, 1]}), "its canonical encoding")
    refused(extension(GCounter, {"e": [1, 0, 1], "d": [1, 0, 1]}), "its canonical encoding")


def test_long_and_deep_input_is_refused_before_it_costs_anything():
    refused(bytes(MAX_BYTES + 1), f"at most {MAX_BYTES} bytes, got {MAX_BYTES + 1}")
    state = GCounter()
    for _ in range(MAX_DEPTH):
        state = Product(state)
    refused(encode(state), f"at most {MAX_DEPTH} states inside each other")
    deep = b"\x91" * 900 + b"\xc0"
    refused(msgpack.packb(msgpack.ExtType(TYPES.index(ORSet), deep)), "needs")
    element = ()
    for _ in range(9):
        element = (element,)
    with pytest.raises(ValueError, match="an element needs"):
        ORSet().add(ME, element)


def test_a_few_bytes_cannot_ask_for_a_million_dots():
    huge = {"d": [1, 0, [1, 10**9]]}
    refused(extension(ORSet, [huge, {}, []]), "at most 262144 dots beyond gaps")
    refused(extension(ORSet, [{}, huge, [1]]), "needs 1 dots, got more")


def test_live_dots_outside_the_context_are_refused():
    refused(extension(ORSet, [{}, {"d": [1, 0, [0, 1]]}, ["x"]]), "live dots in its context")


def test_a_pair_of_anything_is_no_pair_of_counters():
    refused(extension(TYPES[1], [1, 2]), "a counter needs a GCounter, got int")
    assert decode(encode(Pair(GCounter(), ORSet()))) == Pair(GCounter(), ORSet())


def test_what_has_no_wire_form_is_the_callers_mistake():
    class Private(GCounter):
        pass

    with pytest.raises(TypeError, match="not Private"):
        encode(Private())


def test_equal_sets_have_equal_bytes_however_they_were_filled():
    draw = random.Random(4)
    deltas = [ORSet().add(Replica(1, n, f"pi-{n}"), n) for n in range(8)]
    written = set()
    for _ in range(10):
        draw.shuffle(deltas)
        state = ORSet()
        for delta in deltas:
            state |= delta
        written.add(encode(state))
    assert len(written) == 1
